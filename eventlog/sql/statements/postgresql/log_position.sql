select case when pg_catalog.has_sequence_privilege(s.oid, 'USAGE, SELECT')
  then coalesce(pg_catalog.pg_sequence_last_value(s.oid), q.seqstart - 1) end
from pg_catalog.pg_sequence q
join pg_catalog.pg_class s on s.oid = q.seqrelid
join pg_catalog.pg_depend d on d.objid = s.oid and d.classid = 'pg_catalog.pg_class'::regclass
join pg_catalog.pg_class c on c.oid = d.refobjid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid
where n.nspname = {schema_text} and c.relname = {log_text} and a.attname = {record_id_text} and d.deptype in ('a', 'i')
/
