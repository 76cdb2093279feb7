-- of the table, or of a partition of it
with recursive tree (oid) as (
  select c.oid
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = :schema and c.relname = :table_name
  union all
  select i.inhrelid from pg_catalog.pg_inherits i join tree on tree.oid = i.inhparent
)
select distinct s.subname as name
from pg_catalog.pg_subscription_rel r
join tree on tree.oid = r.srrelid
join (select oid, subname from pg_catalog.pg_subscription) s on s.oid = r.srsubid
order by 1
/
