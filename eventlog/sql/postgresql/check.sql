-- check_index --
-- How many indexes serve the pick-up; under ranges, the primary key does.
select count(*) + (select count(*) from {state} s where s.finish_mode = 'ranges')
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = {schema_text} and c.relname = {log_text} and i.indisvalid and i.indpred is not null

-- check_sequence --
-- The sequences of the log that do not give record_ids in the order of changes.
select s.relname, q.seqcache, pg_catalog.format('alter sequence %I.%I cache 1;', sn.nspname, s.relname)
from pg_catalog.pg_sequence q
join pg_catalog.pg_class s on s.oid = q.seqrelid
join pg_catalog.pg_namespace sn on sn.oid = s.relnamespace
join pg_catalog.pg_depend d on d.objid = s.oid and d.classid = 'pg_catalog.pg_class'::regclass
join pg_catalog.pg_class c on c.oid = d.refobjid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = {schema_text} and c.relname = {log_text} and d.deptype in ('a', 'i') and q.seqcache > 1

-- check_encoding --
-- The server's encoding, where it is one in which texts are any bytes.
select current_setting('server_encoding') as encoding
where current_setting('server_encoding') = 'SQL_ASCII'
