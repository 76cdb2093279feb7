select table_schema as schema_name, table_name as table_name,
  case table_type when 'BASE TABLE' then 'table' else lower(table_type) end as kind
from information_schema.tables
where table_schema = coalesce(:schema, database())
order by 1, 2
/
