select count(*)
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = {schema_text} and c.relname = {log_text} and i.indisvalid and i.indpred is not null
/
