-- catalogue_tables --
-- The tables and views of a schema.
select table_schema as schema_name, table_name as table_name,
  case when table_type in ('BASE TABLE', 'SYSTEM VERSIONED') then 'table' else lower(table_type) end as kind
from information_schema.tables
where table_schema = coalesce(:schema, database())
order by 1, 2

-- catalogue_identity --
-- What a table is, by which it differs from another of its name, and who owns it.
select
  case when table_type in ('BASE TABLE', 'SYSTEM VERSIONED') then 'table' else lower(table_type) end as kind,
  null as table_id, null as owner
from information_schema.tables
where table_schema = :schema and table_name = :table_name

-- catalogue_key --
-- The columns of a table's primary key.
-- but for the end of a row's time, which a versioned table adds to tell former rows apart
select k.column_name as column_name
from information_schema.key_column_usage k
join information_schema.columns c
  on c.table_schema = k.table_schema and c.table_name = k.table_name and c.column_name = k.column_name
where k.table_schema = :schema and k.table_name = :table_name and k.constraint_name = 'PRIMARY'
  and coalesce(c.generation_expression, '') <> 'ROW END'
order by k.ordinal_position
