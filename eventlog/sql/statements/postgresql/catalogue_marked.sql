-- ours: the function belongs to whom the record belongs to, and stands beside it
select n.nspname as schema_name, c.relname as table_name,
  max(case when p.proowner = r.relowner and p.pronamespace = r.relnamespace then 1 else 0 end) as ours
from pg_catalog.pg_trigger t
join pg_catalog.pg_proc p on p.oid = t.tgfoid
join pg_catalog.pg_class c on c.oid = t.tgrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join (
  pg_catalog.pg_class r join pg_catalog.pg_namespace rn on rn.oid = r.relnamespace
) on rn.nspname = :log_schema and r.relname = :record
where pg_catalog.strpos(p.prosrc, :mark) > 0 and pg_catalog.strpos(p.prosrc, :log) > 0 and not c.relispartition
group by 1, 2
/
