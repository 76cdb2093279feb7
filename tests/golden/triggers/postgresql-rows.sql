\set ON_ERROR_STOP on
begin;

create or replace function "indirect"."eventlog_event"(
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
insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
values ($1, session_user, $2, $3, $4, $5, $6)
$eventlog$;

revoke all on function "indirect"."eventlog_event"(integer, text, text, text, text, text) from public;

create or replace function "indirect"."eventlog_key_value"(value text) returns text
language sql
immutable
set search_path to pg_catalog, pg_temp
as $eventlog$
select case when value operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(value, E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else value end from (select $1 collate pg_catalog."C") as given (value)
$eventlog$;

create or replace function "indirect"."eventlog_capture_off"(reason text) returns void
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
declare
  noticed bigint;
begin
  insert into "indirect"."eventlog_notice" (username, kind, session_id, words)
  values (session_user, 'capture off', pg_backend_pid(), reason)
  returning notice_id into noticed;
  perform set_config('eventlog.capture', noticed::text, false);
end
$eventlog$;

revoke all on function "indirect"."eventlog_capture_off"(text) from public;

create or replace function "indirect"."eventlog_capture_on"() returns void
language sql
set search_path to pg_catalog, pg_temp
as $eventlog$
select set_config('eventlog.capture', '', false)
$eventlog$;

create or replace function "indirect"."eventlog_capture_is_off"() returns boolean
language sql
stable
set search_path to pg_catalog, pg_temp
as $eventlog$
select exists (
  select from "indirect"."eventlog_notice" n
  where n.notice_id::text = current_setting('eventlog.capture', true)
    and n.kind = 'capture off'
    and n.username = session_user
    and n.session_id = pg_backend_pid()
    and n.words is not null
)
$eventlog$;

revoke all on function "indirect"."eventlog_capture_is_off"() from public;

create or replace function "indirect"."eventlog$indirect$usr$insert"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 5, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text
  from eventlog_new n;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$;

revoke all on function "indirect"."eventlog$indirect$usr$insert"() from public;

drop trigger if exists "!eventlog_insert" on "indirect"."usr";

create trigger "!eventlog_insert"
  after insert on "indirect"."usr"
  referencing new table as eventlog_new
  for each statement execute function "indirect"."eventlog$indirect$usr$insert"();

create or replace function "indirect"."eventlog$indirect$usr$update"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
  if not exists (select from eventlog_new offset 1) then
    insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
    select 6, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text
    from eventlog_old o cross join eventlog_new n
      where (not (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu")) and (o."born" is distinct from n."born" or o."photo" is distinct from n."photo" or o."amount" is distinct from n."amount" or o."bio" is distinct from n."bio" collate pg_catalog."C");
    logged := logged or found;
    if not found then
      insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 4, session_user, 'usr', 'site=' operator(pg_catalog.||) case when o."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text
      from eventlog_old o cross join eventlog_new n
        where (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu");
      logged := logged or found;
      insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 5, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text
      from eventlog_old o cross join eventlog_new n
        where (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu");
      logged := logged or found;
    end if;
  else
    if exists (select from (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      where o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu") then
      insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 4, session_user, 'usr', 'site=' operator(pg_catalog.||) case when o."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text
      from (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        where (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu");
      logged := logged or found;
      insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 5, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text
      from (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        where (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu");
      logged := logged or found;
    end if;
    insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
    select 6, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text
    from (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      where (not (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu")) and (o."born" is distinct from n."born" or o."photo" is distinct from n."photo" or o."amount" is distinct from n."amount" or o."bio" is distinct from n."bio" collate pg_catalog."C");
    logged := logged or found;
  end if;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$;

revoke all on function "indirect"."eventlog$indirect$usr$update"() from public;

drop trigger if exists "!eventlog_update" on "indirect"."usr";

create trigger "!eventlog_update"
  after update on "indirect"."usr"
  referencing old table as eventlog_old new table as eventlog_new
  for each statement execute function "indirect"."eventlog$indirect$usr$update"();

create or replace function "indirect"."eventlog$indirect$usr$delete"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 4, session_user, 'usr', 'site=' operator(pg_catalog.||) case when o."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text
  from eventlog_old o;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$;

revoke all on function "indirect"."eventlog$indirect$usr$delete"() from public;

drop trigger if exists "!eventlog_delete" on "indirect"."usr";

create trigger "!eventlog_delete"
  after delete on "indirect"."usr"
  referencing old table as eventlog_old
  for each statement execute function "indirect"."eventlog$indirect$usr$delete"();

create or replace function "indirect"."eventlog$indirect$usr$truncate"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
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
  insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 4, session_user, 'usr', 'site=' operator(pg_catalog.||) case when o."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text
  from only "indirect"."usr" o;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$;

revoke all on function "indirect"."eventlog$indirect$usr$truncate"() from public;

drop trigger if exists "!eventlog_truncate" on "indirect"."usr";

create trigger "!eventlog_truncate"
  before truncate on "indirect"."usr"
  for each statement execute function "indirect"."eventlog$indirect$usr$truncate"();

commit;
