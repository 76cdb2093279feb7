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
-- eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from eventlog_new n
    cross join lateral (
      select 1 as event_type, 'born'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, (n."born" at time zone 'UTC')::pg_catalog.text as new_value
      where n."born" is distinct from null
      union all
      select 1, 'photo'::pg_catalog.text, null::pg_catalog.text, pg_catalog.translate(pg_catalog.encode(n."photo", 'base64'), pg_catalog.chr(10), '')
      where n."photo" is distinct from null
      union all
      select 1, 'amount'::pg_catalog.text, null::pg_catalog.text, n."amount"::pg_catalog.text
      where n."amount" is distinct from null
      union all
      select 1, 'bio'::pg_catalog.text, null::pg_catalog.text, n."bio"::pg_catalog.text collate pg_catalog."C"
      where n."bio" is distinct from null
      union all
      select 1, 'born'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
      where n."born" is not distinct from null and n."photo" is not distinct from null and n."amount" is not distinct from null and n."bio" is not distinct from null
    ) f;
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
-- eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
  if not exists (select from eventlog_new offset 1) then
    insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
    from eventlog_old o cross join eventlog_new n
      cross join lateral (
        select 2 as event_type, 'born'::pg_catalog.text as column_name, (o."born" at time zone 'UTC')::pg_catalog.text as old_value, (n."born" at time zone 'UTC')::pg_catalog.text as new_value
        where o."born" is distinct from n."born"
        union all
        select 2, 'photo'::pg_catalog.text, pg_catalog.translate(pg_catalog.encode(o."photo", 'base64'), pg_catalog.chr(10), ''), pg_catalog.translate(pg_catalog.encode(n."photo", 'base64'), pg_catalog.chr(10), '')
        where o."photo" is distinct from n."photo"
        union all
        select 2, 'amount'::pg_catalog.text, o."amount"::pg_catalog.text, n."amount"::pg_catalog.text
        where o."amount" is distinct from n."amount"
        union all
        select 2, 'bio'::pg_catalog.text, o."bio"::pg_catalog.text collate pg_catalog."C", n."bio"::pg_catalog.text collate pg_catalog."C"
        where o."bio" is distinct from n."bio" collate pg_catalog."C"
      ) f
      where (not (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu"));
    logged := logged or found;
    if not found then
      insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 4, session_user, 'usr', 'site=' operator(pg_catalog.||) case when o."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text
      from eventlog_old o cross join eventlog_new n
        where (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu");
      logged := logged or found;
      insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
      select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
      from eventlog_old o cross join eventlog_new n
        cross join lateral (
          select 1 as event_type, 'born'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, (n."born" at time zone 'UTC')::pg_catalog.text as new_value
          where n."born" is distinct from null
          union all
          select 1, 'photo'::pg_catalog.text, null::pg_catalog.text, pg_catalog.translate(pg_catalog.encode(n."photo", 'base64'), pg_catalog.chr(10), '')
          where n."photo" is distinct from null
          union all
          select 1, 'amount'::pg_catalog.text, null::pg_catalog.text, n."amount"::pg_catalog.text
          where n."amount" is distinct from null
          union all
          select 1, 'bio'::pg_catalog.text, null::pg_catalog.text, n."bio"::pg_catalog.text collate pg_catalog."C"
          where n."bio" is distinct from null
          union all
          select 1, 'born'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
          where n."born" is not distinct from null and n."photo" is not distinct from null and n."amount" is not distinct from null and n."bio" is not distinct from null
        ) f
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
      insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
      select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
      from (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        cross join lateral (
          select 1 as event_type, 'born'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, (n."born" at time zone 'UTC')::pg_catalog.text as new_value
          where n."born" is distinct from null
          union all
          select 1, 'photo'::pg_catalog.text, null::pg_catalog.text, pg_catalog.translate(pg_catalog.encode(n."photo", 'base64'), pg_catalog.chr(10), '')
          where n."photo" is distinct from null
          union all
          select 1, 'amount'::pg_catalog.text, null::pg_catalog.text, n."amount"::pg_catalog.text
          where n."amount" is distinct from null
          union all
          select 1, 'bio'::pg_catalog.text, null::pg_catalog.text, n."bio"::pg_catalog.text collate pg_catalog."C"
          where n."bio" is distinct from null
          union all
          select 1, 'born'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
          where n."born" is not distinct from null and n."photo" is not distinct from null and n."amount" is not distinct from null and n."bio" is not distinct from null
        ) f
        where (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu");
      logged := logged or found;
    end if;
    insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
    from (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."site", x."idu", x."born", x."photo", x."amount", x."bio", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      cross join lateral (
        select 2 as event_type, 'born'::pg_catalog.text as column_name, (o."born" at time zone 'UTC')::pg_catalog.text as old_value, (n."born" at time zone 'UTC')::pg_catalog.text as new_value
        where o."born" is distinct from n."born"
        union all
        select 2, 'photo'::pg_catalog.text, pg_catalog.translate(pg_catalog.encode(o."photo", 'base64'), pg_catalog.chr(10), ''), pg_catalog.translate(pg_catalog.encode(n."photo", 'base64'), pg_catalog.chr(10), '')
        where o."photo" is distinct from n."photo"
        union all
        select 2, 'amount'::pg_catalog.text, o."amount"::pg_catalog.text, n."amount"::pg_catalog.text
        where o."amount" is distinct from n."amount"
        union all
        select 2, 'bio'::pg_catalog.text, o."bio"::pg_catalog.text collate pg_catalog."C", n."bio"::pg_catalog.text collate pg_catalog."C"
        where o."bio" is distinct from n."bio" collate pg_catalog."C"
      ) f
      where (not (o."site" is distinct from n."site" collate pg_catalog."C" or o."idu" is distinct from n."idu"));
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
-- eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}
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
-- eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}
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

create or replace function "indirect"."eventlog$indirect$usr$indirect$usr_phone$insert"() returns trigger
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
-- eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from eventlog_new n
    cross join lateral (
      select 2 as event_type, 'usr_phone.phoneno'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."phoneno"::pg_catalog.text collate pg_catalog."C" as new_value
      where n."phoneno" is distinct from null
    ) f
    where (n."idu" is distinct from null and n."site" is distinct from null);
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

revoke all on function "indirect"."eventlog$indirect$usr$indirect$usr_phone$insert"() from public;

drop trigger if exists "!eventlog_insert$usr" on "indirect"."usr_phone";

create trigger "!eventlog_insert$usr"
  after insert on "indirect"."usr_phone"
  referencing new table as eventlog_new
  for each statement execute function "indirect"."eventlog$indirect$usr$indirect$usr_phone$insert"();

create or replace function "indirect"."eventlog$indirect$usr$indirect$usr_phone$update"() returns trigger
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
-- eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when o."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from (select x."idu", x."site", x."phoneno", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
    full join (select x."idu", x."site", x."phoneno", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
    cross join lateral (
      select 2 as event_type, 'usr_phone.phoneno'::pg_catalog.text as column_name, o."phoneno"::pg_catalog.text collate pg_catalog."C" as old_value, null::pg_catalog.text as new_value
      where o."phoneno" is distinct from null
    ) f
    where ((o."idu" is distinct from n."idu" or o."site" is distinct from n."site" collate pg_catalog."C") and o."idu" is distinct from null and o."site" is distinct from null and exists (select from "indirect"."usr" p where p."idu" operator(pg_catalog.=) o."idu" and p."site" operator(pg_catalog.=) o."site"));
  logged := logged or found;
  insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from (select x."idu", x."site", x."phoneno", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
    full join (select x."idu", x."site", x."phoneno", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
    cross join lateral (
      select 2 as event_type, 'usr_phone.phoneno'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."phoneno"::pg_catalog.text collate pg_catalog."C" as new_value
      where n."phoneno" is distinct from null
    ) f
    where ((o."idu" is distinct from n."idu" or o."site" is distinct from n."site" collate pg_catalog."C") and n."idu" is distinct from null and n."site" is distinct from null);
  logged := logged or found;
  insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when n."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from (select x."idu", x."site", x."phoneno", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
    full join (select x."idu", x."site", x."phoneno", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
    cross join lateral (
      select 2 as event_type, 'usr_phone.phoneno'::pg_catalog.text as column_name, o."phoneno"::pg_catalog.text collate pg_catalog."C" as old_value, n."phoneno"::pg_catalog.text collate pg_catalog."C" as new_value
      where o."phoneno" is distinct from n."phoneno" collate pg_catalog."C"
    ) f
    where (not (o."idu" is distinct from n."idu" or o."site" is distinct from n."site" collate pg_catalog."C") and n."idu" is distinct from null and n."site" is distinct from null);
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

revoke all on function "indirect"."eventlog$indirect$usr$indirect$usr_phone$update"() from public;

drop trigger if exists "!eventlog_update$usr" on "indirect"."usr_phone";

create trigger "!eventlog_update$usr"
  after update on "indirect"."usr_phone"
  referencing old table as eventlog_old new table as eventlog_new
  for each statement execute function "indirect"."eventlog$indirect$usr$indirect$usr_phone$update"();

create or replace function "indirect"."eventlog$indirect$usr$indirect$usr_phone$delete"() returns trigger
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
-- eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when o."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from eventlog_old o
    cross join lateral (
      select 2 as event_type, 'usr_phone.phoneno'::pg_catalog.text as column_name, o."phoneno"::pg_catalog.text collate pg_catalog."C" as old_value, null::pg_catalog.text as new_value
      where o."phoneno" is distinct from null
    ) f
    where (o."idu" is distinct from null and o."site" is distinct from null and exists (select from "indirect"."usr" p where p."idu" operator(pg_catalog.=) o."idu" and p."site" operator(pg_catalog.=) o."site"));
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

revoke all on function "indirect"."eventlog$indirect$usr$indirect$usr_phone$delete"() from public;

drop trigger if exists "!eventlog_delete$usr" on "indirect"."usr_phone";

create trigger "!eventlog_delete$usr"
  after delete on "indirect"."usr_phone"
  referencing old table as eventlog_old
  for each statement execute function "indirect"."eventlog$indirect$usr$indirect$usr_phone$delete"();

create or replace function "indirect"."eventlog$indirect$usr$indirect$usr_phone$truncate"() returns trigger
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
-- eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}
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
    insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when o."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
    from only "indirect"."usr_phone" o
      cross join lateral (
        select 2 as event_type, 'usr_phone.phoneno'::pg_catalog.text as column_name, o."phoneno"::pg_catalog.text collate pg_catalog."C" as old_value, null::pg_catalog.text as new_value
        where o."phoneno" is distinct from null
      ) f
      where (o."idu" is distinct from null and o."site" is distinct from null and exists (select from "indirect"."usr" p where p."idu" operator(pg_catalog.=) o."idu" and p."site" operator(pg_catalog.=) o."site" and p.tableoid operator(pg_catalog.<>) all (eventlog_truncate.exclusive)));
    logged := logged or found;
  end;
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

revoke all on function "indirect"."eventlog$indirect$usr$indirect$usr_phone$truncate"() from public;

drop trigger if exists "!eventlog_truncate$usr" on "indirect"."usr_phone";

create trigger "!eventlog_truncate$usr"
  before truncate on "indirect"."usr_phone"
  for each statement execute function "indirect"."eventlog$indirect$usr$indirect$usr_phone$truncate"();

create or replace function "indirect"."eventlog$indirect$usr$indirect$usr_phone$truncated"() returns trigger
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
-- eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "indirect"."eventlog_capture_is_off"() then
    return null;
  end if;
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
    insert into "indirect"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'usr', 'site=' operator(pg_catalog.||) case when p."site"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(p."site"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else p."site"::pg_catalog.text collate pg_catalog."C" end operator(pg_catalog.||) '+idu=' operator(pg_catalog.||) p."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
    from "indirect"."usr" p
      cross join lateral (
        select 8 as event_type, 'usr_phone.phoneno'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
        where true
      ) f
      where (p.tableoid operator(pg_catalog.=) any (eventlog_truncate.exclusive));
    logged := logged or found;
  end;
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

revoke all on function "indirect"."eventlog$indirect$usr$indirect$usr_phone$truncated"() from public;

drop trigger if exists "!eventlog_truncated$usr" on "indirect"."usr_phone";

create trigger "!eventlog_truncated$usr"
  after truncate on "indirect"."usr_phone"
  for each statement execute function "indirect"."eventlog$indirect$usr$indirect$usr_phone$truncated"();

commit;
