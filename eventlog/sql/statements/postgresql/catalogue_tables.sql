select n.nspname as schema_name, c.relname as table_name,
  case c.relkind when 'r' then 'table' when 'p' then 'partitioned' when 'v' then 'view'
    when 'm' then 'materialized view' else 'foreign table' end as kind
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f')
  and n.nspname = coalesce(:schema, n.nspname)
  and (:schema is not null or n.nspname = any (current_schemas(false)))
order by 1, 2
/
