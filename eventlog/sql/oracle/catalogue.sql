-- catalogue_home --
-- The schema that a name without one means.
select sys_context('USERENV', 'CURRENT_SCHEMA') as schema_name from dual

-- catalogue_schemas --
-- All schemas.
select username as schema_name from all_users

-- catalogue_places --
-- The schemas in which a name without one is found, the first of them first.
select distinct owner as schema_name
from all_objects
where owner = sys_context('USERENV', 'CURRENT_SCHEMA') and object_name = :name

-- catalogue_log --
-- The columns of the log with their types.
select column_name as column_name,
  case
    when data_type = 'NUMBER' and data_precision is not null
      then 'NUMBER(' || data_precision || ',' || data_scale || ')'
    when data_type in ('CHAR', 'NCHAR', 'VARCHAR2', 'NVARCHAR2') then data_type || '(' || char_length || ')'
    else data_type
  end as type_name,
  1 as exact,
  1 as keyed,
  case
    when column_name in (
      select max(c.column_name)
      from all_indexes i
      join all_ind_columns c on c.index_owner = i.owner and c.index_name = i.index_name
      where i.table_owner = {schema_text} and i.table_name = {log_text} and i.uniqueness = 'UNIQUE'
      group by i.owner, i.index_name
      having count(*) = 1
    ) then 1
    else 0
  end as is_unique
from all_tab_cols
where owner = {schema_text} and table_name = {log_text} and user_generated = 'YES'
order by column_id nulls last, internal_column_id

-- catalogue_tables --
-- The tables and views of a schema.
select owner as schema_name, table_name as table_name, 'table' as kind
from all_tables
where owner = coalesce(:schema, sys_context('USERENV', 'CURRENT_SCHEMA')) and nested = 'NO'
union all
select owner, view_name, 'view'
from all_views
where owner = coalesce(:schema, sys_context('USERENV', 'CURRENT_SCHEMA'))
order by 1, 2

-- catalogue_identity --
-- What a table is, by which it differs from another of its name, and who owns it.
select lower(object_type) as kind, to_char(object_id) as table_id, owner as owner
from all_objects
where owner = :schema and object_name = :table_name and object_type in ('TABLE', 'VIEW')

-- catalogue_columns --
-- The columns of a table with their types.
-- invisible columns are columns too; what the database adds for itself is none
select column_name as column_name,
  case
    when data_type = 'XMLTYPE' and data_type_owner in ('SYS', 'PUBLIC') then data_type
    when data_type_owner is not null then 'OBJECT ' || data_type_owner || '.' || data_type
    when data_type = 'NUMBER' and data_precision is not null
      then 'NUMBER(' || data_precision || ',' || data_scale || ')'
    when data_type = 'NUMBER' and data_scale = 0 then 'NUMBER(38,0)'
    when data_type in ('CHAR', 'NCHAR', 'VARCHAR2', 'NVARCHAR2') then data_type || '(' || char_length || ')'
    when data_type = 'RAW' then data_type || '(' || data_length || ')'
    else data_type
  end as type_name,
  case virtual_column when 'YES' then 1 else 0 end as virtual
from all_tab_cols
where owner = :schema and table_name = :table_name and user_generated = 'YES'
order by column_id nulls last, internal_column_id

-- catalogue_key --
-- The columns of a table's primary key.
select u.column_name as column_name
from all_constraints k
join all_cons_columns u on u.owner = k.owner and u.constraint_name = k.constraint_name
where k.owner = :schema and k.table_name = :table_name and k.constraint_type = 'P'
order by u.position

-- catalogue_foreign_keys --
-- The foreign keys of a table, a line for each column.
select k.constraint_name as constraint_name, u.column_name as column_name, t.owner as target_schema,
  t.table_name as target_table, t.column_name as target_column, k.delete_rule as on_delete,
  'no action' as on_update
from all_constraints k
join all_cons_columns u on u.owner = k.owner and u.constraint_name = k.constraint_name
join all_cons_columns t
  on t.owner = k.r_owner and t.constraint_name = k.r_constraint_name and t.position = u.position
where k.owner = :schema and k.table_name = :table_name and k.constraint_type = 'R'
order by k.constraint_name, u.position

-- catalogue_family --
-- The tables that a table inherits from or is inherited by.
select table_name as name, '' as kin from all_tables where 1 = 0 and owner = :schema and table_name = :table_name

-- catalogue_triggers --
-- The triggers of a table.
select trigger_name as trigger_name, table_owner as schema_name, table_name as table_name,
  '' as routine, case when trigger_type like '%EACH ROW%' then 1 else 0 end as fires_by_row,
  case status when 'ENABLED' then 1 else 0 end as enabled, 0 as internal, trigger_body as body
from all_triggers
where table_owner = :schema and table_name = :table_name
order by trigger_name

-- catalogue_marked --
-- The tables that have triggers of ours for this log.
-- ours: the trigger belongs to whom the log belongs to
select t.table_owner as schema_name, t.table_name as table_name,
  max(case when t.owner = :log_schema then 1 else 0 end) as ours
from all_source s
join all_triggers t on t.owner = s.owner and t.trigger_name = s.name
where s.type = 'TRIGGER' and instr(s.text, :mark) > 0 and :record is not null
  and exists (
    select null from all_source l
    where l.owner = s.owner and l.name = s.name and l.type = s.type and instr(l.text, :log) > 0
  )
group by t.table_owner, t.table_name

-- catalogue_routines --
-- The routines of a schema, and nothing of what they do.
select object_name as routine_name, cast(null as varchar2(1)) as body
from all_objects
where owner = :schema and object_type in ('PROCEDURE', 'FUNCTION', 'PACKAGE')

-- catalogue_logs --
-- The tables of any schema that have the ten columns of a log.
select owner as schema_name, table_name as table_name
from all_tab_cols
where user_generated = 'YES' and lower(column_name) in (
  'record_id', 'status', 'event_type', 'event_time', 'perpetrator', 'table_name', 'table', 'table_key', 'column_name',
  'old_value', 'new_value'
)
group by owner, table_name
having count(*) = 10
order by 1, 2

-- catalogue_sees_routines --
-- One row if no routine of a schema is hidden from us.
select 'all' as privilege from dual where sys_context('USERENV', 'SESSION_USER') = :schema

-- catalogue_subscriptions --
-- The subscriptions that write to a table.
select table_name as name from all_tables where 1 = 0 and owner = :schema and table_name = :table_name

-- catalogue_owner --
-- Who owns the record of what is tracked, and whether that is a superuser.
-- functions of no role of their own
select null as owner, 0 as almighty from dual where :schema is null and :table_name is null
