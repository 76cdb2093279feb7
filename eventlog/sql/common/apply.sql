-- applied_make --
-- The table that holds what was applied of each source.
create table {applied} (
  source varchar(200) not null,
  state {long_text},
  rounds numeric(19) not null,
  constraint {applied_key} primary key (source)
) {table_options}

-- applied_marks_make --
-- The table of what was applied of sources in which the order of positions says nothing.
create table {applied_marks} (
  source varchar(200) not null,
  mark varchar(200) not null,
  constraint {applied_marks_key} primary key (source, mark)
) {table_options}

-- applied_refused_make --
-- The table of events that were refused, with a row for each object that an event changes.
create table {applied_refused} (
  source varchar(200) not null,
  mark varchar(200) not null,
  object_digest varchar(64) not null,
  place numeric(19) not null,
  tried numeric(19) not null,
  state varchar(10) not null,
  constraint {applied_refused_key} primary key (source, mark, object_digest),
  constraint {applied_refused_objects_key} unique (source, object_digest, mark)
) {table_options}

-- applied_ddl_make --
-- The table of statements that changed the target's tables.
create table {applied_ddl} (
  source varchar(200) not null,
  made_at timestamp not null,
  statement {long_text} not null
) {table_options}

-- applied --
-- What was applied of a source, and how often it grew.
select state, rounds from {applied} where source = :source

-- applied_lock --
-- The same, until our transaction ends nobody else's to change.
select rounds from {applied} where source = :source for update

-- applied_begin --
-- Notes a source of which nothing was applied yet.
insert into {applied} (source, state, rounds) values (:source, null, 0)

-- applied_keep --
-- Notes what was applied of a source.
update {applied} set state = :state, rounds = rounds + 1 where source = :source

-- applied_mark --
-- Notes one thing that was applied.
insert into {applied_marks} (source, mark) values (:source, :mark)

-- applied_refused_states --
-- The states of the events of a source that were refused and not applied since.
select distinct state from {applied_refused} where source = :source

-- applied_refuse --
-- Notes an event that was refused.
insert into {applied_refused} (source, mark, object_digest, place, tried, state)
values (:source, :mark, :object, :place, :tried, 'refused')

-- applied_refused_forget --
-- Forgets that an event was refused, because it was tried again.
delete from {applied_refused} where source = :source and mark = :mark

-- applied_overtake --
-- Notes that a later event of an object was applied.
update {applied_refused} set state = 'overtaken'
where source = :source and object_digest = :object and place < :place

-- applied_ddl --
-- Notes a statement that changed a table.
insert into {applied_ddl} (source, made_at, statement) values (:source, {utc_now}, :statement)

-- apply_session --
-- What a transaction begins with that applies changes: nothing.

-- apply_check --
-- Has constraints speak that would else wait until the transaction ends: there are none.

-- apply_count --
-- How many rows a table has.
select count(*) from {table}

-- apply_empty --
-- Takes every row from a table.
delete from {table}

-- apply_create --
-- Makes a table.
create table {table} (
  {columns},
  constraint {key_name} primary key ({key})
) {table_options}

-- apply_create_schema --
-- Makes a schema.
create schema {schema}

-- apply_add_column --
-- Adds a column to a table.
alter table {table} add {column}

-- apply_insert --
-- Inserts the staged rows that are not there and lack the same columns.
insert into {table} ({names})
select {cells}
from {stage} s
where s.row_write = 'w' and s.missing_defaults = :missing_defaults
  and not exists (select 1 from {table} t where {same})

-- stage_fill --
-- Stages a row.
insert into {stage} ({names}) values ({values})

-- stage_empty --
-- Takes all rows from a stage.
delete from {stage}

-- stage_missing --
-- The staged rows that must be there and are not.
select s.n from {stage} s
where s.required = 1
  and not exists (select 1 from {table} t where {same})

-- stage_keys --
-- How many rows of the target the staged rows are.
select count(*) from (select distinct {keys} from {stage} s) d

-- apply_setting --
-- An assignment of an update that joins a stage.
{alias}.{column} = {value}
