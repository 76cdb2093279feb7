select a.attname as column_name,
  pg_catalog.format_type(
    case t.typtype when 'd' then t.typbasetype else a.atttypid end,
    case t.typtype when 'd' then t.typtypmod else a.atttypmod end
  ) as type_name,
  case when l.collisdeterministic is false or pg_catalog.format_type(
    case t.typtype when 'd' then t.typbasetype else a.atttypid end, null) like '%citext' then 0 else 1 end as exact,
  1 as keyed
from pg_catalog.pg_attribute a
join pg_catalog.pg_type t on t.oid = a.atttypid
left join pg_catalog.pg_collation l on l.oid = a.attcollation
where a.attrelid = pg_catalog.to_regclass('{log}') and a.attnum > 0 and not a.attisdropped
order by a.attnum
/
