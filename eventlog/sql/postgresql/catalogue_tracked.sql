select distinct n.nspname as schema_name, c.relname as table_name
from pg_catalog.pg_trigger t
join pg_catalog.pg_proc p on p.oid = t.tgfoid
join pg_catalog.pg_class c on c.oid = t.tgrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where p.prosrc like :mark and not c.relispartition
/
