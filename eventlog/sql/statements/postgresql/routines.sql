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
select {quoted}
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
  insert into {notice} (username, kind, words)
  values (session_user, 'capture off', pg_backend_pid() || ': ' || reason)
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
    and n.words like pg_backend_pid() || ':%'
)
$eventlog$
/
revoke all on function {off}() from public
/
