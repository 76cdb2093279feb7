
-- {mark}
declare
  who text := session_user;
begin
{guard}  if current_setting('eventlog.capture', true) <> '' and {off}() then
    return null;
  end if;
{rows}
  -- a publisher that sleeps holds this lock: only then is there somebody to wake
  if not (pg_try_advisory_lock_shared({wake}) and pg_advisory_unlock_shared({wake})) then
    perform pg_notify('eventlog', {log_text});
  end if;
  return null;
end

/
