select nspname as schema_name from pg_catalog.pg_namespace
/
