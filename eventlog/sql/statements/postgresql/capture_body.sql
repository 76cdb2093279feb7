
-- {mark}
declare
  logged boolean := false;
begin
{guard}  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and {off}() then
    return null;
  end if;
{rows}
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared({wake}) and pg_catalog.pg_advisory_unlock_shared({wake})) then
      perform pg_catalog.pg_notify('eventlog', {log_text});
    end if;
  end if;
  return null;
end

/
