select s.subname as name
from pg_catalog.pg_subscription_rel r
join pg_catalog.pg_class c on c.oid = r.srrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join (select oid, subname from pg_catalog.pg_subscription) s on s.oid = r.srsubid
where n.nspname = :schema and c.relname = :table_name
/
