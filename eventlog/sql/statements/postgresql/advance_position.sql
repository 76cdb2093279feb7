select pg_catalog.setval(s.oid, {past}, true)
from pg_catalog.pg_class s
join pg_catalog.pg_depend d on d.objid = s.oid and d.classid = 'pg_catalog.pg_class'::regclass
join pg_catalog.pg_class c on c.oid = d.refobjid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid
where n.nspname = {schema_text} and c.relname = {log_text} and a.attname = {record_id_text}
  and d.deptype in ('a', 'i') and s.relkind = 'S'
/
