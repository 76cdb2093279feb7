-- catalogue_home --
-- The schema that a name without one means.
select database() as schema_name

-- catalogue_schemas --
-- All schemas.
select schema_name as schema_name from information_schema.schemata

-- catalogue_places --
-- The schemas in which a name without one is found, the first of them first.
select table_schema as schema_name
from information_schema.tables
where table_schema = database() and table_name = :name

-- catalogue_log --
-- The columns of the log with their types.
select c.column_name as column_name, c.column_type as type_name,
  case when coalesce(c.collation_name, '{collation}') = '{collation}' then 1 else 0 end as exact,
  exists (
    select 1 from information_schema.statistics s
    where s.table_schema = {schema_text} and s.table_name = {log_text} and s.index_name = 'PRIMARY'
      and s.seq_in_index = 1 and s.column_name = c.column_name) as keyed,
  c.column_name in (
    select max(s.column_name)
    from information_schema.statistics s
    where s.table_schema = {schema_text} and s.table_name = {log_text} and s.non_unique = 0
    group by s.index_name
    having count(*) = 1) as is_unique
from information_schema.columns c
where c.table_schema = {schema_text} and c.table_name = {log_text}
order by c.ordinal_position

-- catalogue_tables --
-- The tables and views of a schema.
select table_schema as schema_name, table_name as table_name,
  case table_type when 'BASE TABLE' then 'table' else lower(table_type) end as kind
from information_schema.tables
where table_schema = coalesce(:schema, database())
order by 1, 2

-- catalogue_identity --
-- What a table is, by which it differs from another of its name, and who owns it.
select case table_type when 'BASE TABLE' then 'table' else lower(table_type) end as kind,
  null as table_id, null as owner
from information_schema.tables
where table_schema = :schema and table_name = :table_name

-- catalogue_columns --
-- The columns of a table with their types.
select column_name as column_name, column_type as type_name,
  case when extra like '%VIRTUAL%' then 1 else 0 end as `virtual`
from information_schema.columns
where table_schema = :schema and table_name = :table_name
order by ordinal_position

-- catalogue_key --
-- The columns of a table's primary key.
select column_name as column_name
from information_schema.key_column_usage
where table_schema = :schema and table_name = :table_name and constraint_name = 'PRIMARY'
order by ordinal_position

-- catalogue_foreign_keys --
-- The foreign keys of a table, a line for each column.
select u.constraint_name as constraint_name, u.column_name as column_name,
  u.referenced_table_schema as target_schema, u.referenced_table_name as target_table,
  u.referenced_column_name as target_column, r.delete_rule as on_delete, r.update_rule as on_update
from information_schema.key_column_usage u
join information_schema.referential_constraints r
  on r.constraint_schema = u.constraint_schema and r.constraint_name = u.constraint_name
  and r.table_name = u.table_name
where u.table_schema = :schema and u.table_name = :table_name and u.referenced_table_name is not null
order by u.constraint_name, u.ordinal_position

-- catalogue_triggers --
-- The triggers of a table.
-- MySQL tells a doubled single quote of a trigger as one: bodies are compared without any
-- no trigger may change the table that it stands on, so none of others comes between a change and its row in the log
select trigger_name as trigger_name, event_object_schema as schema_name, event_object_table as table_name,
  replace(action_statement, '''', '') as body, '' as routine, 0 as fires_by_row, 1 as enabled, 0 as internal
from information_schema.triggers
where event_object_schema = :schema and event_object_table = :table_name
order by action_order

-- catalogue_marked --
-- The tables that have triggers of ours for this log.
-- ours: made by the user that we are, who owns the log
select event_object_schema as schema_name, event_object_table as table_name,
  max(case when definer = current_user() then 1 else 0 end) as ours
from information_schema.triggers
where instr(action_statement, :mark) > 0 and instr(action_statement, :log) > 0
  and :log_schema is not null and :record is not null
group by 1, 2

-- catalogue_routines --
-- The routines of a schema, and what they do.
select routine_name as routine_name, replace(routine_definition, '''', '') as body
from information_schema.routines
where routine_schema = :schema

-- catalogue_sees_routines --
-- One row or more if no routine of a schema is hidden from us.
-- rights that come by a role are not seen here
select privilege_type as privilege
from information_schema.user_privileges
where replace(grantee, '''', '') = current_user() and privilege_type in ('CREATE ROUTINE', 'ALTER ROUTINE')
union all
select privilege_type
from information_schema.schema_privileges
where replace(grantee, '''', '') = current_user() and privilege_type in ('CREATE ROUTINE', 'ALTER ROUTINE')
  and table_schema = :schema

-- catalogue_owner --
-- Who owns the record of what is tracked, and whether that is a superuser.
-- functions of no role of their own
select null as owner, 0 as almighty from (select 1 as one) as d where :schema is null and :table_name is null

-- catalogue_shows_triggers --
-- The rights by which somebody sees the triggers of others.
-- rights that come by a role are not seen here
select grantee as grantee, current_user() as ours, privilege_type as privilege
from information_schema.user_privileges
union all
select grantee, current_user(), privilege_type
from information_schema.schema_privileges
where table_schema = :schema
union all
select grantee, current_user(), privilege_type
from information_schema.table_privileges
where table_schema = :schema and table_name = :table_name
