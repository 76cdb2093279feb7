-- applied_marked --
-- Those of some marks that are noted.
select mark from {applied_marks}
where source = :source and mark in (select json_array_elements_text(cast(:marks as json)))

-- applied_refused --
-- What is noted of those of some marks that were refused.
select mark, place, tried, state from {applied_refused}
where source = :source
  and mark in (select json_array_elements_text(cast(:marks as json)))

-- applied_refused_objects --
-- Those of some objects of which an event was refused.
select distinct object_digest from {applied_refused}
where source = :source and state = 'refused'
  and object_digest in (select json_array_elements_text(cast(:objects as json)))

-- apply_session --
-- What a transaction begins with that applies changes: each staged row looks its target up by the key.
set local enable_hashjoin = off
/
set local enable_mergejoin = off

-- apply_check --
-- Has constraints speak that would else wait until the transaction ends.
set constraints all immediate
/
set constraints all deferred

-- apply_columns --
-- The columns of a table: which the database computes, and which take more than null where nothing is given.
-- A number that is always generated is computed, unless it is in the key.
select a.attname as column_name,
  case when a.attgenerated <> '' or (a.attidentity = 'a' and not exists (
    select 1 from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisprimary and a.attnum = any (i.indkey)
  )) then 1 else 0 end as computed,
  case when a.atthasdef or a.attidentity <> '' or t.typdefault is not null then 1 else 0 end as has_default
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_type t on t.oid = a.atttypid
where n.nspname = :schema and c.relname = :table_name and a.attnum > 0 and not a.attisdropped

-- apply_empty --
-- Takes every row from a table.
truncate table {table}

-- apply_update --
-- Gives the rows that are there what was staged for them.
update {table} as t set {settings}
from {stage} as s
where s.row_write = :row_write and {same}

-- apply_delete --
-- Takes the staged rows that leave from a table.
delete from {table} as t
using {stage} as s
where s.deletion = :deletion and {same}

-- apply_insert --
-- Inserts the staged rows that are not there and lack the same columns.
insert into {table} ({names}) overriding system value
select {cells}
from {stage} as s
where s.row_write = 'w' and s.missing_defaults = :missing_defaults
  and not exists (select from {table} as t where {same})

-- stage_make --
-- Makes a stage, in which columns have the types of the target's.
create temporary table {stage} on commit delete rows as
select cast(null as integer) as n, cast(null as integer) as required, cast(null as text) as deletion,
  cast(null as text) as row_write, cast(null as text) as missing_defaults, cast(null as text) as mask, {columns}
from {table} as t
with no data

-- stage_copy --
-- Stages rows.
copy {stage} ({names}) from stdin

-- stage_lock --
-- Keeps rows as they are that take another key, until they are read and deleted.
select from {stage} as s
join {table} as t on {same}
where s.deletion = :deletion
for update of t

-- stage_read --
-- Gives staged rows that had another key what was not staged for them.
update {stage} as s set {settings}
from {table} as t
where {same_before}

-- stage_empty --
-- Takes all rows from a stage.
truncate table {stage}

-- apply_setting --
-- An assignment of an update that joins a stage.
{column} = {value}
