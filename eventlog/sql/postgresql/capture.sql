-- routines --
-- Makes the routines by which users log events, write keys and switch capture off.
create or replace function {event}(
  event_type integer,
  table_name text,
  table_key text,
  column_name text default null,
  old_value text default null,
  new_value text default null
) returns void
language sql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
insert into {log} ({event_type}, {perpetrator}, {table_name}, {table_key}, {column_name}, {old_value}, {new_value})
values ($1, session_user, $2, $3, $4, $5, $6)
$eventlog$
/
revoke all on function {event}(integer, text, text, text, text, text) from public
/
create or replace function {key_value}(value text) returns text
language sql
immutable
set search_path to pg_catalog, pg_temp
as $eventlog$
select {quoted} from (select $1 collate pg_catalog."C") as given (value)
$eventlog$
/
create or replace function {capture_off}(reason text) returns void
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
declare
  noticed bigint;
begin
  insert into {notice} (username, kind, session_id, words)
  values (session_user, 'capture off', pg_backend_pid(), reason)
  returning notice_id into noticed;
  perform set_config('eventlog.capture', noticed::text, false);
end
$eventlog$
/
revoke all on function {capture_off}(text) from public
/
create or replace function {capture_on}() returns void
language sql
set search_path to pg_catalog, pg_temp
as $eventlog$
select set_config('eventlog.capture', '', false)
$eventlog$
/
create or replace function {off}() returns boolean
language sql
stable
set search_path to pg_catalog, pg_temp
as $eventlog$
select exists (
  select from {notice} n
  where n.notice_id::text = current_setting('eventlog.capture', true)
    and n.kind = 'capture off'
    and n.username = session_user
    and n.session_id = pg_backend_pid()
    and n.words is not null
)
$eventlog$
/
revoke all on function {off}() from public
/

-- routines_owner --
-- Gives the log's routines to the log's owner.
alter function {event}(integer, text, text, text, text, text) owner to {owner}
/
alter function {key_value}(text) owner to {owner}
/
alter function {capture_off}(text) owner to {owner}
/
alter function {capture_on}() owner to {owner}
/
alter function {off}() owner to {owner}
/

-- drop_routines --
-- Drops the log's routines.
drop function if exists {event}(integer, text, text, text, text, text)
/
drop function if exists {key_value}(text)
/
drop function if exists {capture_off}(text)
/
drop function if exists {capture_on}()
/
drop function if exists {off}()
/

-- capture --
-- Makes the function of a trigger.
create or replace function {function}() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
{settings}
as {text}
/
revoke all on function {function}() from public
/

-- capture_body --
-- What a trigger does.
-- {mark}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
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

-- sees_all_rows --
-- Raises a serialization failure if a transaction committed since the snapshot, because a truncate takes its rows, too.
-- A status is of this moment, not of the snapshot; after the last transaction of all comes an error.
if pg_catalog.current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
  declare
    since pg_catalog.pg_snapshot := pg_catalog.pg_current_snapshot();
    later pg_catalog.int8 := pg_catalog.pg_snapshot_xmax(since)::pg_catalog.text::pg_catalog.int8;
    committed pg_catalog.bool := exists (
      select from pg_catalog.pg_snapshot_xip(since) running
      where coalesce(pg_catalog.pg_xact_status(running), 'committed') operator(pg_catalog.=) 'committed'
    );
  begin
    begin
      for ahead in 0..1000000 loop
        exit when committed;
        committed := coalesce(
          pg_catalog.pg_xact_status((later operator(pg_catalog.+) ahead)::pg_catalog.text::pg_catalog.xid8), 'committed'
        ) operator(pg_catalog.=) 'committed';
      end loop;
      committed := true; -- or there were too many to ask for each
    exception
      when invalid_parameter_value then
        null;
    end;
    if committed then
      raise exception using errcode = '40001',
        message = pg_catalog.format('%s is not truncated: a transaction committed since the snapshot of this one,'
          ' and no delete could be logged for rows that it wrote', tg_relid::pg_catalog.regclass),
        hint = 'repeat the transaction with the truncate first, or truncate at READ COMMITTED';
    end if;
  end;
end if;

-- with_exclusive --
-- Logs with the tables that this transaction has locked exclusively, those of the running truncate included.
<<eventlog_truncate>>
declare
  exclusive pg_catalog.oid[] := array(
    select l.relation
    from pg_catalog.pg_locks l
    where l.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()
      and l.locktype operator(pg_catalog.=) 'relation'
      and l.mode operator(pg_catalog.=) 'AccessExclusiveLock'
  );
begin
{rows}
end;

-- capture_owner --
-- Gives the function of a trigger to the log's owner.
alter function {function}() owner to {owner}

-- trigger --
-- Makes a trigger.
drop trigger if exists {trigger} on {table}
/
create trigger {trigger}
  {event} on {table}
  {referencing}for each {granularity} execute function {function}()
/

-- trigger_firing --
-- Says in which sessions a trigger fires.
alter table {table} enable {firing} trigger {trigger}

-- drop_trigger --
-- Drops a trigger.
drop trigger if exists {trigger} on {table}

-- drop_routine --
-- Drops the function of a trigger.
drop function if exists {routine}()

-- record --
-- Puts on record what of a table is tracked.
insert into {tracked} (schema_name, table_name, of_schema, of_table, logged_as, table_id, table_owner, choice)
select n.nspname, c.relname, {of_schema}, {of_table}, {logged_as}, c.oid, r.rolname, {choice}
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_roles r on r.oid = c.relowner
where n.nspname = {schema_name} and c.relname = {own_name}
on conflict on constraint {tracked_key} do update
set logged_as = excluded.logged_as, table_id = excluded.table_id, table_owner = excluded.table_owner,
  choice = excluded.choice, tracked_at = excluded.tracked_at, tracked_by = excluded.tracked_by
