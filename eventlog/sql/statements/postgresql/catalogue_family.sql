select pn.nspname || '.' || p.relname as name,
  case when c.relispartition then 'partition' when p.oid = i.inhparent then 'parent' else 'child' end as kin
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_inherits i on c.oid in (i.inhrelid, i.inhparent)
join pg_catalog.pg_class p on p.oid in (i.inhrelid, i.inhparent) and p.oid <> c.oid
join pg_catalog.pg_namespace pn on pn.oid = p.relnamespace
where n.nspname = :schema and c.relname = :table_name
  and case when c.relispartition then p.oid = i.inhparent else c.relkind <> 'p' end
order by 1
/
