\set ON_ERROR_STOP on
begin;

-- A change of an object that the table names already waits until that row is gone: else who deletes the row
-- that he read would delete a newer one with it.
create table "hr"."usr_delta" (
  "login" varchar(20) primary key,
  action varchar(10) not null
);

comment on table "hr"."usr_delta" is 'eventlog for sailpoint by login';

create table "hr"."usr_delta_waiting" (
  place bigint primary key generated always as identity,
  "login" varchar(20) not null,
  action varchar(10) not null
);

create index on "hr"."usr_delta_waiting" ("login");

create function "hr"."usr_delta_note"(changed varchar(20), done varchar) returns void
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
begin
  for attempt in 1..100 loop -- each that fails met a reader that deleted the row in between
    insert into "hr"."usr_delta" values ("usr_delta_note".changed, "usr_delta_note".done) on conflict do nothing;
    if found then
      return;
    end if;
    -- written, not only locked: a reader whose snapshot is older must not delete it
    update "hr"."usr_delta" d set action = d.action where d."login" = "usr_delta_note".changed;
    if found then
      insert into "hr"."usr_delta_waiting" ("login", action) values ("usr_delta_note".changed, "usr_delta_note".done);
      return;
    end if;
  end loop;
  raise exception using errcode = '40001',
    message = pg_catalog.format('%s takes no row for %s', 'usr_delta', "usr_delta_note".changed),
    hint = 'repeat the transaction; if it fails again, drop other constraints and triggers of that table';
end
$eventlog$;

revoke all on function "hr"."usr_delta_note"(varchar(20), varchar) from public;

create function "hr"."usr_delta_changed"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
begin
  if tg_op = 'TRUNCATE' then
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
    perform "hr"."usr_delta_note"(t."login", 'Delete') from "hr"."usr" t;
  elsif tg_op = 'INSERT' then
    perform "hr"."usr_delta_note"(new."login", 'Insert');
  elsif tg_op = 'DELETE' then
    perform "hr"."usr_delta_note"(old."login", 'Delete');
  elsif old."login" <> new."login" then
    perform "hr"."usr_delta_note"(old."login", 'Delete');
    perform "hr"."usr_delta_note"(new."login", 'Insert');
  elsif old::text is distinct from new::text then -- as texts, because json has no equality
    perform "hr"."usr_delta_note"(new."login", 'Update');
  end if;
  return null;
end
$eventlog$;

create trigger "usr_delta_changed" after insert or update or delete on "hr"."usr"
for each row execute function "hr"."usr_delta_changed"();

create trigger "usr_delta_truncated" before truncate on "hr"."usr"
for each statement execute function "hr"."usr_delta_changed"();

create function "hr"."usr_delta_read"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
begin
  if tg_op = 'TRUNCATE' then
    raise exception '% is not truncated: delete the rows that were read', tg_table_name;
  end if;
  with newer as (
    delete from "hr"."usr_delta_waiting" w where w."login" = old."login" returning w.place, w.action
  )
  insert into "hr"."usr_delta" select old."login", n.action from newer n order by n.place desc limit 1
  on conflict do nothing;
  return null;
end
$eventlog$;

create trigger "usr_delta_read" after delete on "hr"."usr_delta"
for each row execute function "hr"."usr_delta_read"();

create trigger "usr_delta_truncated" before truncate on "hr"."usr_delta"
for each statement execute function "hr"."usr_delta_read"();

drop trigger if exists "usr_delta_changed" on "hr"."usr";

drop trigger if exists "usr_delta_truncated" on "hr"."usr";

drop function if exists "hr"."usr_delta_changed"();

drop function if exists "hr"."usr_delta_note";

drop table if exists "hr"."usr_delta", "hr"."usr_delta_waiting";

drop function if exists "hr"."usr_delta_read"();

commit;
