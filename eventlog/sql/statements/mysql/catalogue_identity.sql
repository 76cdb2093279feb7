select case table_type when 'BASE TABLE' then 'table' else lower(table_type) end as kind,
  null as table_id, null as owner
from information_schema.tables
where table_schema = :schema and table_name = :table_name
/
