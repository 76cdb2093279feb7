-- create_delta --
-- Makes a table of two columns for readers that delete what they read, and what fills it.
-- A change of an object that the table names already waits until that row is gone: else who deletes the row
-- that he read would delete a newer one with it.
create table {delta} (
  {identity} {type} primary key,
  action varchar(10) not null
)
/
comment on table {delta} is {mark}
/
create table {waiting} (
  place bigint primary key generated always as identity,
  {identity} {type} not null,
  action varchar(10) not null
)
/
create index on {waiting} ({identity})
/
create function {note}(changed {type}, done varchar) returns void
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
begin
  for attempt in 1..100 loop -- each that fails met a reader that deleted the row in between
    insert into {delta} values ({note_label}.changed, {note_label}.done) on conflict do nothing;
    if found then
      return;
    end if;
    -- written, not only locked: a reader whose snapshot is older must not delete it
    update {delta} d set action = d.action where d.{identity} = {note_label}.changed;
    if found then
      insert into {waiting} ({identity}, action) values ({note_label}.changed, {note_label}.done);
      return;
    end if;
  end loop;
  raise exception using errcode = '40001',
    message = pg_catalog.format('%s takes no row for %s', {delta_text}, {note_label}.changed),
    hint = 'repeat the transaction; if it fails again, drop other constraints and triggers of that table';
end
$eventlog$
/
revoke all on function {note}({type}, varchar) from public
/
@count_changes
/
create function {read}() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
begin
  if tg_op = 'TRUNCATE' then
    raise exception '% is not truncated: delete the rows that were read', tg_table_name;
  end if;
  with newer as (
    delete from {waiting} w where w.{identity} = old.{identity} returning w.place, w.action
  )
  insert into {delta} select old.{identity}, n.action from newer n order by n.place desc limit 1
  on conflict do nothing;
  return null;
end
$eventlog$
/
create trigger {read_label} after delete on {delta}
for each row execute function {read}()
/
create trigger {truncated_label} before truncate on {delta}
for each statement execute function {read}()

-- count_changes --
-- Makes the triggers of a table that note each changed object.
create function {changed}() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
begin
  if tg_op = 'TRUNCATE' then
{sees_all}
    perform {note}({row_identity}, 'Delete') from {table} t;
  elsif tg_op = 'INSERT' then
    perform {note}({new_identity}, 'Insert');
  elsif tg_op = 'DELETE' then
    perform {note}({old_identity}, 'Delete');
  elsif {old_identity} <> {new_identity} then
    perform {note}({old_identity}, 'Delete');
    perform {note}({new_identity}, 'Insert');
  elsif old::text is distinct from new::text then -- as texts, because json has no equality
    perform {note}({new_identity}, 'Update');
  end if;
  return null;
end
$eventlog$
/
create trigger {changed_label} after insert or update or delete on {table}
for each row execute function {changed}()
/
create trigger {truncated_label} before truncate on {table}
for each statement execute function {changed}()

-- create_queue --
-- Makes a queue of the changed objects of a table, for a reader that gives them numbers and deletes what it finished.
create table {delta} (
  place bigint primary key generated always as identity,
  {identity} {type} not null,
  action varchar(10) not null,
  handed bigint -- the number under which a reader got it last; null: none has
)
/
comment on table {delta} is {mark}
/
create index on {delta} (handed)
/
@create_last
/
create function {note}(changed {type}, done varchar) returns void
language sql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
insert into {delta} ({identity}, action) values ({note_label}.changed, {note_label}.done)
$eventlog$
/
revoke all on function {note}({type}, varchar) from public
/
@count_changes

-- drop_counting --
-- Removes the triggers of a table that note changed objects.
drop trigger if exists {changed_label} on {table}
/
drop trigger if exists {truncated_label} on {table}
/
drop function if exists {changed}()
/
drop function if exists {note}

-- drop_delta --
-- Removes a table of two columns, and what fills it.
@drop_counting
/
drop table if exists {delta}, {waiting}
/
drop function if exists {read}()

-- delta_column --
-- The type of a column, and whether it is not null, and alone in a unique index.
-- no type: an extension or a collation compares its values in its own way, and we hold them as texts
select
  case when not exists (
    select from pg_collation l where l.oid = a.attcollation and not l.collisdeterministic
  ) and not exists (
    with recursive under (oid) as (
      select a.atttypid
      union all
      select d.typbasetype from under join pg_type d on d.oid = under.oid and d.typtype = 'd'
    )
    select from under
    join pg_opclass o on o.opcintype = under.oid and o.opcdefault and o.opcnamespace <> 'pg_catalog'::regnamespace
    join pg_am m on m.oid = o.opcmethod and m.amname = 'btree'
  ) then format_type(a.atttypid, a.atttypmod) end,
  a.attnotnull,
  exists (
    select from pg_index i
    where i.indrelid = a.attrelid and i.indisunique and i.indnkeyatts = 1 and i.indkey[0] = a.attnum
      and i.indpred is null and i.indimmediate -- else one statement may exchange two identities
  )
from pg_attribute a
where a.attrelid = to_regclass(quote_ident(:schema) || '.' || quote_ident(:table_name)) and a.attname = :identity and a.attnum > 0 and not a.attisdropped

-- deltas --
-- The tables for readers, by their marks.
select n.nspname, c.relname, obj_description(c.oid, 'pg_class')
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where obj_description(c.oid, 'pg_class') like :mark

-- silent_filling --
-- How many of the triggers of a table that fill another one do not fire.
select 2 - count(*)
from pg_trigger t
where t.tgrelid = to_regclass(quote_ident(:schema) || '.' || quote_ident(:table_name)) and t.tgenabled = 'O'
  and t.tgname in (:reader_table || '_changed', :reader_table || '_truncated')

-- silent_emptying --
-- How many triggers of a table for readers do not fire.
select 2 - count(*)
from pg_trigger t
where t.tgrelid = to_regclass(quote_ident(:schema) || '.' || quote_ident(:reader_table)) and t.tgenabled = 'O'
  and t.tgname in (:reader_table || '_read', :reader_table || '_truncated')

-- stuck_in_delta --
-- How many changes wait though their identity has no row.
select count(*) from {waiting} w where not exists (select from {delta} d where d.{identity} = w.{identity})
