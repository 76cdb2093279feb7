select case c.relkind when 'r' then 'table' when 'p' then 'partitioned' when 'v' then 'view'
    when 'm' then 'materialized view' else 'foreign table' end as kind,
  cast(c.oid as text) as table_id, r.rolname as owner
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_roles r on r.oid = c.relowner
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname = :schema and c.relname = :table_name
/
