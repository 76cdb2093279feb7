select k.conname as constraint_name, a.attname as column_name,
  tn.nspname as target_schema, tc.relname as target_table, ta.attname as target_column,
  case k.confdeltype when 'c' then 'cascade' when 'n' then 'set null' when 'd' then 'set default'
    when 'r' then 'restrict' else 'no action' end as on_delete,
  case k.confupdtype when 'c' then 'cascade' when 'n' then 'set null' when 'd' then 'set default'
    when 'r' then 'restrict' else 'no action' end as on_update
from pg_catalog.pg_constraint k
join pg_catalog.pg_class c on c.oid = k.conrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_class tc on tc.oid = k.confrelid
join pg_catalog.pg_namespace tn on tn.oid = tc.relnamespace
cross join lateral unnest(k.conkey, k.confkey) with ordinality u (own, target, place)
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = u.own
join pg_catalog.pg_attribute ta on ta.attrelid = tc.oid and ta.attnum = u.target
where n.nspname = :schema and c.relname = :table_name and k.contype = 'f'
order by k.conname, u.place
/
