-- the type under a domain; one of a user that is called like one of the server's is told with its schema
select a.attname as column_name,
  case
    when s.oid is null or t.typnamespace = s.typnamespace then pg_catalog.format_type(base.oid, base.typmod)
    else pg_catalog.format('%I.%I', tn.nspname, t.typname)
  end as type_name,
  case a.attgenerated when 'v' then 1 else 0 end as virtual
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join lateral (
  with recursive under (oid, typmod, depth) as (
    select a.atttypid, a.atttypmod, 0
    union all
    select d.typbasetype, d.typtypmod, under.depth + 1
    from under
    join pg_catalog.pg_type d on d.oid = under.oid and d.typtype = 'd'
  )
  select under.oid, under.typmod from under order by under.depth desc limit 1
) base
join pg_catalog.pg_type t on t.oid = base.oid
join pg_catalog.pg_namespace tn on tn.oid = t.typnamespace
left join pg_catalog.pg_type s
  on s.typname = t.typname and s.typnamespace = cast('pg_catalog' as pg_catalog.regnamespace)
where n.nspname = :schema and c.relname = :table_name and a.attnum > 0 and not a.attisdropped
order by a.attnum
/
