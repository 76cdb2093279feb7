-- create_delta --
-- Makes a table of two columns for readers that delete what they read, and what fills it.
-- A change of an object that the table names already waits until that row is gone: else who deletes the row
-- that he read would delete a newer one with it.
create table {delta} (
  {identity} {type} primary key,
  action varchar2(10) not null
)
/
comment on table {delta} is {mark}
/
create table {waiting} (
  place number(19) generated always as identity (order),
  {identity} {type} not null,
  action varchar2(10) not null,
  primary key (place)
)
/
create index {waiting} on {waiting} ({identity})
/
create or replace procedure {note}(changed in {table}.{identity}%type, done in varchar2) authid definer is
begin
  loop
    begin
      insert into {delta} ({identity}, action) values ({note_label}.changed, {note_label}.done);
      return;
    exception
      when dup_val_on_index then
        null;
    end;
    -- written, not only locked: a reader whose snapshot is older must not delete it
    update {delta} d set d.action = d.action where d.{identity} = {note_label}.changed;
    if sql%rowcount > 0 then
      insert into {waiting} ({identity}, action) values ({note_label}.changed, {note_label}.done);
      return;
    end if;
  end loop;
end;
/
-- only after the statement may the table be written to from which it deletes
create or replace trigger {read}
for delete on {delta}
referencing old as eventlog_old
compound trigger
  type identities is table of {table}.{identity}%type index by pls_integer;
  deleted identities;
  eventlog_identity {table}.{identity}%type;

after each row is
begin
  deleted(deleted.count + 1) := :eventlog_old.{identity};
end after each row;

after statement is
begin
  for position in 1..deleted.count loop
    eventlog_identity := deleted(position);
    insert into {delta} ({identity}, action)
    select w.{identity}, w.action
    from {waiting} w
    where w.place = (select max(n.place) from {waiting} n where n.{identity} = eventlog_identity)
      and not exists (select null from {delta} d where d.{identity} = w.{identity});
    if sql%rowcount > 0 then
      delete from {waiting} w where w.{identity} = eventlog_identity;
    end if;
  end loop;
  deleted.delete();
end after statement;

end;
/
@count_changes

-- count_changes --
-- Makes the trigger of a table that notes each changed object.
@verify_reader
/
-- new identities come at the end of the statement, because another row may have had them before
create or replace trigger {changed}
for insert or update or delete on {table}
referencing old as eventlog_old new as eventlog_new
compound trigger
  type identities is table of {table}.{identity}%type index by pls_integer;
  arrived identities;

after each row is
begin
  if inserting then
    {note}(:eventlog_new.{identity}, 'Insert');
  elsif deleting then
    {note}(:eventlog_old.{identity}, 'Delete');
  elsif :eventlog_old.{identity} = :eventlog_new.{identity} then
    {note}(:eventlog_new.{identity}, 'Update');
  else
    {note}(:eventlog_old.{identity}, 'Delete');
    arrived(arrived.count + 1) := :eventlog_new.{identity};
  end if;
end after each row;

after statement is
begin
  for position in 1..arrived.count loop
    {note}(arrived(position), 'Insert');
  end loop;
  arrived.delete();
end after statement;

end;
/
@verify_reader

-- create_queue --
-- Makes a queue of the changed objects of a table, for a reader that gives them numbers and deletes what it finished.
create table {delta} (
  place number(19) generated always as identity (order),
  {identity} {type} not null,
  action varchar2(10) not null,
  handed number(19), -- the number under which a reader got it last; null: none has
  primary key (place)
)
/
comment on table {delta} is {mark}
/
create index {read} on {delta} (handed)
/
@create_last
/
create or replace procedure {note}(changed in {table}.{identity}%type, done in varchar2) authid definer is
begin
  insert into {delta} ({identity}, action) values ({note_label}.changed, {note_label}.done);
end;
/
@count_changes

-- create_last --
-- Makes a table with the highest number that a reader of a queue gave.
create table {last} (
  handed number(19) primary key
)
/
insert into {last} (handed) values (0)

-- verify_reader --
-- Fails if a routine does not compile, and drops the trigger of the table if it is one, because nothing could be written.
declare
  faults varchar2(4000);
begin
  select max(e.type || ' ' || e.name || ', line ' || e.line || ': ' || substr(e.text, 1, 1000))
    keep (dense_rank first order by e.type, e.name, e.sequence)
  into faults
  from sys.all_errors e
  where e.attribute = 'ERROR' and e.owner = {schema_text} and e.name in ({note_text}, {read_text}, {changed_text});
  if faults is not null then
    begin
      execute immediate 'drop trigger ' || {changed_quoted_text};
    exception
      when others then
        if sqlcode <> -4080 then raise; end if; -- ORA-04080: it is not there
    end;
    raise_application_error(-20000, 'a routine for the reader does not compile: ' || faults);
  end if;
end;

-- drop_counting --
-- Removes the trigger of a table that notes changed objects.
drop trigger if exists {changed}
/
drop procedure if exists {note}

-- drop_delta --
-- Removes a table of two columns, and what fills it.
@drop_counting
/
drop table if exists {waiting}
/
drop table if exists {delta}

-- delta_column --
-- The type of a column, and whether it is not null, and alone in a unique index.
select
  case
    when c.data_type in ('CHAR', 'VARCHAR2') and c.char_used = 'C' then c.data_type || '(' || c.char_length || ' char)'
    when c.data_type in ('CHAR', 'VARCHAR2') then c.data_type || '(' || c.data_length || ' byte)'
    when c.data_type in ('NCHAR', 'NVARCHAR2') then c.data_type || '(' || c.char_length || ')'
    when c.data_type = 'RAW' then c.data_type || '(' || c.data_length || ')'
    when c.data_type = 'NUMBER' and c.data_precision is not null
      then 'NUMBER(' || c.data_precision || ',' || c.data_scale || ')'
    when c.data_type = 'NUMBER' and c.data_scale = 0 then 'NUMBER(38,0)'
    else c.data_type
  end,
  case c.nullable when 'N' then 1 else 0 end,
  case
    when exists (
      select i.index_name
      from all_indexes i
      join all_ind_columns u on u.index_owner = i.owner and u.index_name = i.index_name
      where i.table_owner = :schema and i.table_name = :table_name and i.uniqueness = 'UNIQUE'
      group by i.owner, i.index_name
      having count(*) = 1 and max(u.column_name) = :identity
    ) then 1
    else 0
  end
from all_tab_cols c
where c.owner = :schema and c.table_name = :table_name and c.column_name = :identity

-- deltas --
-- The tables for readers, by their marks.
select c.owner, c.table_name, c.comments from all_tab_comments c where c.comments like :mark

-- silent_filling --
-- How many of the triggers of a table that fill another one do not fire.
select 1 - count(*)
from all_triggers t
where t.table_owner = :schema and t.table_name = :table_name and t.status = 'ENABLED'
  and t.trigger_name = :reader_table || '_CHANGED'

-- silent_emptying --
-- How many triggers of a table for readers do not fire.
select 1 - count(*)
from all_triggers t
where t.table_owner = :schema and t.table_name = :reader_table and t.status = 'ENABLED'
  and t.trigger_name = :reader_table || '_READ'

-- stuck_in_delta --
-- How many changes wait though their identity has no row.
select count(*) from {waiting} w where not exists (select null from {delta} d where d.{identity} = w.{identity})
