-- applied_marked --
-- Those of some marks that are noted.
select mark from {applied_marks}
where source = :source
  and mark in (select w.mark from json_table(:marks, '$[*]' columns (mark varchar(200) path '$')) as w)

-- applied_refused --
-- What is noted of those of some marks that were refused.
select mark, place, tried, state from {applied_refused}
where source = :source
  and mark in (select w.mark from json_table(:marks, '$[*]' columns (mark varchar(200) path '$')) as w)

-- applied_refused_objects --
-- Those of some objects of which an event was refused.
select distinct object_digest from {applied_refused}
where source = :source and state = 'refused'
  and object_digest in (select w.object_digest from json_table(:objects, '$[*]' columns (object_digest varchar(200) path '$')) as w)

-- apply_session --
-- What a transaction begins with that applies changes: a number 0 is one, and asks for no new one.
set sql_mode = concat(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')

-- apply_columns --
-- The columns of a table: which the database computes, and which take more than null where nothing is given.
select column_name as column_name,
  case when generation_expression <> '' then 1 else 0 end as computed,
  case when column_default is not null and column_default <> 'NULL' or extra like '%auto_increment%'
    then 1 else 0 end as has_default
from information_schema.columns
where table_schema = :schema and table_name = :table_name

-- apply_update --
-- Gives the rows that are there what was staged for them.
update {stage} as s
straight_join {table} as t on {same}
set {settings}
where s.row_write = :row_write

-- apply_delete --
-- Takes the staged rows that leave from a table.
delete t from {stage} as s
straight_join {table} as t on {same}
where s.deletion = :deletion

-- stage_make --
-- Makes a stage, in which columns have the types of the target's, and take null.
create temporary table {stage} (
  n integer,
  required integer,
  deletion char(1),
  row_write char(1),
  missing_defaults longtext,
  mask longtext
) as
select {columns}
from (select 1 as one) as d
left join {table} as t on 1 = 0
limit 0

-- stage_read --
-- Gives staged rows that had another key what was not staged for them.
update {stage} as s
straight_join {table} as t on {same_before}
set {settings}

-- stage_lock --
-- Keeps rows as they are that take another key, until they are read and deleted.
select 1 from {stage} as s
straight_join {table} as t on {same}
where s.deletion = :deletion
for update
