select n.nspname as schema_name
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relname = :name and n.nspname = any (current_schemas(false))
order by array_position(current_schemas(false), n.nspname)
/
