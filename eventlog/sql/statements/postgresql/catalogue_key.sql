select a.attname as column_name, case when k.condeferrable then 1 else 0 end as is_deferrable
from pg_catalog.pg_constraint k
join pg_catalog.pg_class c on c.oid = k.conrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join lateral unnest(k.conkey) with ordinality u (attnum, place)
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = u.attnum
where n.nspname = :schema and c.relname = :table_name and k.contype = 'p'
order by u.place
/
