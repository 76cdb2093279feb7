select r.rolname as owner, case when r.rolsuper then 1 else 0 end as almighty
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_roles r on r.oid = c.relowner
where n.nspname = :schema and c.relname = :table_name
/
