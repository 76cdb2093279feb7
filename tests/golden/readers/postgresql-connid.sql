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
