with recursive tree (oid) as (
  select c.oid
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = :schema and c.relname = :table_name
  union all
  select i.inhrelid
  from pg_catalog.pg_inherits i
  join tree on tree.oid = i.inhparent
  join pg_catalog.pg_class c on c.oid = i.inhrelid and c.relispartition
)
select t.tgname as trigger_name, n.nspname as schema_name, c.relname as table_name,
  coalesce(p.prosrc, '') as body,
  coalesce(pg_catalog.quote_ident(pn.nspname) || '.' || pg_catalog.quote_ident(p.proname), '') as routine,
  -- a self-reference that cascades changes rows of the table row by row, too
  case when t.tgtype & 1 = 1 and t.tgtype & 2 = 0 and (
    not t.tgisinternal
    or k.contype = 'f' and k.conrelid = k.confrelid and t.tgrelid = k.confrelid
      and (k.confupdtype in ('c', 'n', 'd') or k.confdeltype in ('n', 'd'))
  ) then 1 else 0 end as fires_by_row,
  case t.tgenabled when 'O' then 'origin' when 'A' then 'always' when 'R' then 'replica' else 'disabled' end as firing,
  case when t.tgisinternal then 1 else 0 end as internal
from pg_catalog.pg_trigger t
join tree on tree.oid = t.tgrelid
join pg_catalog.pg_class c on c.oid = t.tgrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join pg_catalog.pg_proc p on p.oid = t.tgfoid
left join pg_catalog.pg_namespace pn on pn.oid = p.pronamespace
left join pg_catalog.pg_constraint k on k.oid = t.tgconstraint
where t.tgparentid = 0 -- a partition's copy of a row-level trigger goes with it
order by 2, 3, 1
/
