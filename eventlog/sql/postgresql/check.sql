-- check_index --
-- How many indexes serve the pick-up.
select count(*)
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = {schema_text} and c.relname = {log_text} and i.indisvalid and i.indpred is not null

-- check_sequence --
-- The sequences of the log that do not give record_ids in the order of changes.
select s.relname, q.seqcache, pg_catalog.format('alter sequence %I.%I cache 1;', sn.nspname, s.relname)
from pg_catalog.pg_sequence q
join pg_catalog.pg_class s on s.oid = q.seqrelid
join pg_catalog.pg_namespace sn on sn.oid = s.relnamespace
join pg_catalog.pg_depend d on d.objid = s.oid and d.classid = 'pg_catalog.pg_class'::regclass
join pg_catalog.pg_class c on c.oid = d.refobjid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = {schema_text} and c.relname = {log_text} and d.deptype in ('a', 'i') and q.seqcache > 1

-- check_unguarded --
-- The published tables that are foreign, or views that call functions of users.
with recursive part (table_name, oid, relkind) as (
  select w.table_name, c.oid, c.relkind
  from pg_catalog.json_to_recordset(cast(:places as json)) as w (schema_name text, table_name text)
  join pg_catalog.pg_namespace n on n.nspname = w.schema_name
  join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = w.table_name
  union
  select part.table_name, c.oid, c.relkind
  from part
  cross join lateral (
    select i.inhrelid as oid from pg_catalog.pg_inherits i where i.inhparent = part.oid
    union all
    select d.refobjid
    from pg_catalog.pg_rewrite r
    join pg_catalog.pg_depend d on d.classid = cast('pg_catalog.pg_rewrite' as regclass) and d.objid = r.oid
      and d.refclassid = cast('pg_catalog.pg_class' as regclass)
    where part.relkind = 'v' and r.ev_class = part.oid and d.refobjid <> part.oid
  ) below
  join pg_catalog.pg_class c on c.oid = below.oid
)
select table_name, 'it reads the foreign table ' || cast(cast(oid as regclass) as text) as reason
from part
where relkind = 'f'
union
select part.table_name, 'it calls the function ' || f.proname
from part
join pg_catalog.pg_rewrite r on r.ev_class = part.oid
join pg_catalog.pg_depend d on d.classid = cast('pg_catalog.pg_rewrite' as regclass) and d.objid = r.oid
  and d.refclassid = cast('pg_catalog.pg_proc' as regclass)
join pg_catalog.pg_proc f on f.oid = d.refobjid
join pg_catalog.pg_namespace n on n.oid = f.pronamespace
where part.relkind = 'v' and n.nspname <> 'pg_catalog'
order by 1, 2

-- check_view_truncates --
-- The tables of each published view on which a truncate fires no trigger but those that track made.
with recursive part (schema_name, view_name, oid, relkind) as (
  select w.schema_name, w.view_name, c.oid, c.relkind
  from pg_catalog.json_to_recordset(cast(:places as json)) as w (schema_name text, view_name text)
  join pg_catalog.pg_namespace n on n.nspname = w.schema_name
  join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = w.view_name
  union
  select part.schema_name, part.view_name, c.oid, c.relkind
  from part
  join pg_catalog.pg_rewrite r on r.ev_class = part.oid
  join pg_catalog.pg_depend d on d.classid = cast('pg_catalog.pg_rewrite' as regclass) and d.objid = r.oid
    and d.refclassid = cast('pg_catalog.pg_class' as regclass)
  join pg_catalog.pg_class c on c.oid = d.refobjid
  where part.relkind = 'v' and d.refobjid <> part.oid
)
select part.schema_name, part.view_name,
  array_agg(cast(cast(part.oid as regclass) as text) order by cast(cast(part.oid as regclass) as text))
from part
where part.relkind in ('r', 'p') and not exists (
  select from pg_catalog.pg_trigger t
  join pg_catalog.pg_proc p on p.oid = t.tgfoid
  where t.tgrelid = part.oid and t.tgtype & 32 = 32 and t.tgenabled in ('O', 'A')
    and pg_catalog.strpos(p.prosrc, :mark) = 0
)
group by 1, 2
order by 1, 2
