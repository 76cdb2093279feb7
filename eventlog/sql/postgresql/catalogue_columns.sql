select a.attname as column_name,
  pg_catalog.format_type(
    case t.typtype when 'd' then t.typbasetype else a.atttypid end,
    case t.typtype when 'd' then t.typtypmod else a.atttypmod end
  ) as type_name,
  case a.attgenerated when 'v' then 1 else 0 end as virtual
from pg_catalog.pg_attribute a
join pg_catalog.pg_type t on t.oid = a.atttypid
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = :schema and c.relname = :table_name and a.attnum > 0 and not a.attisdropped
order by a.attnum
/
