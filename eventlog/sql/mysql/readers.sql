-- create_delta --
-- Makes two columns for readers that delete what they read, and what fills them.
-- A trigger may not write to the table from which a row is being deleted. So what readers see is a view of one table:
-- a row that waits there refers to the one that is seen, and its foreign key lets it be seen once that is deleted.
-- Places descend. What waits comes before what is seen in each index, so a delete that goes on does not meet it.
create table {waiting} (
  {identity} {type} not null,
  place bigint not null,
  action varchar(10) not null,
  was_there tinyint not null default 0, -- when a change was noted last
  seen_identity {type},
  seen_place bigint,
  primary key ({identity}, place),
  foreign key (seen_identity, seen_place) references {waiting} ({identity}, place) on delete set null
) engine = InnoDB comment = {mark}
/
create table {last} (
  {identity} {type} primary key,
  place bigint not null
) engine = InnoDB
/
create algorithm = merge sql security definer view {delta} as
select w.{identity}, w.action from {waiting} w where w.seen_place is null
/
-- It only locks rows that there are: a gap that is locked would keep writers of other objects waiting.
create procedure {note}(in changed {type}, in done varchar(10))
sql security definer
modifies sql data
begin
  declare last_place bigint;
  declare was_noted tinyint;
  declare waits_for bigint;
  insert into {last} ({identity}, place) values (changed, 0) on duplicate key update place = {last}.place;
  select l.place into last_place from {last} l where l.{identity} = changed for update;
  insert into {waiting} ({identity}, place, action) values (changed, last_place, done)
  on duplicate key update was_there = 1, action = if({waiting}.seen_place is null, {waiting}.action, done);
  select w.was_there, w.seen_place into was_noted, waits_for
  from {waiting} w
  where w.{identity} = changed and w.place = last_place
  for update;
  if was_noted and waits_for is null then
    insert into {waiting} ({identity}, place, action, seen_identity, seen_place)
    values (changed, last_place - 1, done, changed, last_place);
    update {last} l set l.place = last_place - 1 where l.{identity} = changed;
  end if;
end
/
@count_changes

-- count_changes --
-- Makes the triggers of a table that note each changed object.
create trigger {inserted} after insert on {table} for each row
call {note}(new.{identity}, 'Insert')
/
create trigger {updated} after update on {table} for each row
begin
  if old.{identity} <=> new.{identity} then
    call {note}(new.{identity}, 'Update');
  else
    call {note}(old.{identity}, 'Delete');
    call {note}(new.{identity}, 'Insert');
  end if;
end
/
create trigger {deleted} after delete on {table} for each row
call {note}(old.{identity}, 'Delete')

-- create_queue --
-- Makes a queue of the changed objects of a table, for a reader that gives them numbers and deletes what it finished.
create table {delta} (
  place bigint auto_increment primary key,
  {identity} {type} not null,
  action varchar(10) not null,
  handed bigint, -- the number under which a reader got it last; null: none has
  index (handed)
) engine = InnoDB comment = {mark}
/
@create_last
/
create procedure {note}(in changed {type}, in done varchar(10))
sql security definer
modifies sql data
begin
  {guard_ids}
  insert into {delta} ({identity}, action) values (changed, done);
end
/
@count_changes

-- drop_counting --
-- Removes the triggers of a table that note changed objects.
drop trigger if exists {inserted}
/
drop trigger if exists {updated}
/
drop trigger if exists {deleted}
/
drop procedure if exists {note}

-- drop_delta --
-- Removes two columns for readers, and what fills them.
@drop_counting
/
drop view if exists {delta}
/
drop table if exists {last}
/
drop table if exists {waiting}

-- delta_column --
-- The type of a column, and whether it is not null, and alone in a unique index.
select
  concat(
    c.column_type,
    coalesce(concat(' character set ', c.character_set_name, ' collate ', c.collation_name), '')
  ),
  c.is_nullable = 'NO',
  exists (
    select 1
    from information_schema.statistics s
    where s.table_schema = :schema and s.table_name = :table_name and s.non_unique = 0
    group by s.index_name
    having count(*) = 1 and max(s.column_name) = :identity and max(s.sub_part) is null
  )
from information_schema.columns c
where c.table_schema = :schema and c.table_name = :table_name and c.column_name = :identity

-- deltas --
-- The tables for readers, by their marks.
-- the table of a view for readers has another end of its name
select t.table_schema,
  case right(t.table_name, 8)
    when '_waiting' then left(t.table_name, char_length(t.table_name) - 8)
    else t.table_name
  end,
  t.table_comment
from information_schema.tables t
where t.table_comment like :mark

-- silent_filling --
-- How many of the triggers of a table that fill another one do not fire.
select 3 - count(*)
from information_schema.triggers t
where t.event_object_schema = :schema and t.event_object_table = :table_name and t.trigger_name in (
  concat(:reader_table, '_inserted'), concat(:reader_table, '_updated'), concat(:reader_table, '_deleted')
)

-- silent_emptying --
-- How many triggers of a table for readers do not fire; it has none.
select 0 from (select 1 as one) d where :schema is not null and :reader_table is not null

-- stuck_in_delta --
-- How many changes wait though their identity has no row.
select count(*)
from {waiting} w
where w.seen_place is not null and not exists (
  select 1 from {waiting} d where d.{identity} = w.seen_identity and d.place = w.seen_place
)
