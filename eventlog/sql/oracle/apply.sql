-- applied_marked --
-- Those of some marks that are noted.
select mark from {applied_marks}
where source = :source
  and mark in (select w.mark from json_table(:marks, '$[*]' columns (mark varchar2(200) path '$')) w)

-- applied_refused --
-- What is noted of those of some marks that were refused.
select mark, place, tried, state from {applied_refused}
where source = :source
  and mark in (select w.mark from json_table(:marks, '$[*]' columns (mark varchar2(200) path '$')) w)

-- applied_refused_objects --
-- Those of some objects of which an event was refused.
select distinct object_digest from {applied_refused}
where source = :source and state = 'refused'
  and object_digest in (select w.object_digest from json_table(:objects, '$[*]' columns (object_digest varchar2(200) path '$')) w)

-- apply_columns --
-- The columns of a table: which the database computes, and which take more than null where nothing is given.
select column_name as column_name,
  case virtual_column when 'YES' then 1 else 0 end as computed,
  case when default_length is not null or identity_column = 'YES' then 1 else 0 end as has_default
from all_tab_cols
where owner = :schema and table_name = :table_name and user_generated = 'YES'

-- apply_update --
-- Gives the rows that are there what was staged for them.
merge into {table} t
using (select * from {stage} where row_write = :row_write) s
on ({same})
when matched then update set {settings}

-- apply_delete --
-- Takes the staged rows that leave from a table.
delete from {table} t
where exists (select null from {stage} s where s.deletion = :deletion and {same})

-- stage_make --
-- Makes a stage, in which columns have the types of the target's, and take null.
create private temporary table {stage} on commit preserve definition as
select cast(null as number(10)) as n, cast(null as number(1)) as required, cast(null as varchar2(1)) as deletion,
  cast(null as varchar2(1)) as row_write, cast(null as varchar2(4000)) as missing_defaults, cast(null as varchar2(4000)) as mask,
  {columns}
from dual left join {table} t on 1 = 0
where 1 = 0

-- stage_read --
-- Gives staged rows that had another key what was not staged for them.
merge into {stage} s
using {table} t
on ({same_before})
when matched then update set {settings}

-- stage_lock --
-- Keeps rows as they are that take another key, until they are read and deleted.
select null from {table} t
where exists (select null from {stage} s where s.deletion = :deletion and {same})
for update
