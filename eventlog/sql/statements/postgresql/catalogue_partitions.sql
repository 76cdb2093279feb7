with recursive tree (oid) as (
  select i.inhrelid
  from pg_catalog.pg_inherits i
  join pg_catalog.pg_class p on p.oid = i.inhparent and p.relkind = 'p'
  join pg_catalog.pg_namespace n on n.oid = p.relnamespace
  where n.nspname = :schema and p.relname = :table_name
  union all
  select i.inhrelid from pg_catalog.pg_inherits i join tree on tree.oid = i.inhparent
)
select n.nspname as schema_name, c.relname as table_name,
  case c.relkind when 'p' then 0 else 1 end as leaf
from tree
join pg_catalog.pg_class c on c.oid = tree.oid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
order by 1, 2
/
