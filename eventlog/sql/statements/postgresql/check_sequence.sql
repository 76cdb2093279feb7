select s.relname, q.seqcache, pg_catalog.format('alter sequence %I.%I cache 1;', sn.nspname, s.relname)
from pg_catalog.pg_sequence q
join pg_catalog.pg_class s on s.oid = q.seqrelid
join pg_catalog.pg_namespace sn on sn.oid = s.relnamespace
join pg_catalog.pg_depend d on d.objid = s.oid and d.classid = 'pg_catalog.pg_class'::regclass
join pg_catalog.pg_class c on c.oid = d.refobjid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = {schema_text} and c.relname = {log_text} and d.deptype in ('a', 'i') and q.seqcache > 1
/
