\set ON_ERROR_STOP on
begin;

create table "hr"."usr_queue" (
  place bigint primary key generated always as identity,
  "login" varchar(20) not null,
  action varchar(10) not null,
  handed bigint -- the number under which a reader got it last; null: none has
);

comment on table "hr"."usr_queue" is 'eventlog for connid by login';

create index on "hr"."usr_queue" (handed);

create table "hr"."usr_queue_last" (
  handed bigint primary key
);

insert into "hr"."usr_queue_last" (handed) values (0);

create function "hr"."usr_queue_note"(changed varchar(20), done varchar) returns void
language sql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
insert into "hr"."usr_queue" ("login", action) values ("usr_queue_note".changed, "usr_queue_note".done)
$eventlog$;

revoke all on function "hr"."usr_queue_note"(varchar(20), varchar) from public;

create function "hr"."usr_queue_changed"() returns trigger
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
    perform "hr"."usr_queue_note"(t."login", 'Delete') from "hr"."usr" t;
  elsif tg_op = 'INSERT' then
    perform "hr"."usr_queue_note"(new."login", 'Insert');
  elsif tg_op = 'DELETE' then
    perform "hr"."usr_queue_note"(old."login", 'Delete');
  elsif old."login" <> new."login" then
    perform "hr"."usr_queue_note"(old."login", 'Delete');
    perform "hr"."usr_queue_note"(new."login", 'Insert');
  elsif old::text is distinct from new::text then -- as texts, because json has no equality
    perform "hr"."usr_queue_note"(new."login", 'Update');
  end if;
  return null;
end
$eventlog$;

create trigger "usr_queue_changed" after insert or update or delete on "hr"."usr"
for each row execute function "hr"."usr_queue_changed"();

create trigger "usr_queue_truncated" before truncate on "hr"."usr"
for each statement execute function "hr"."usr_queue_changed"();

drop trigger if exists "usr_queue_changed" on "hr"."usr";

drop trigger if exists "usr_queue_truncated" on "hr"."usr";

drop function if exists "hr"."usr_queue_changed"();

drop function if exists "hr"."usr_queue_note";

drop table if exists "hr"."usr_queue_last";

drop table if exists "hr"."usr_queue";

commit;
