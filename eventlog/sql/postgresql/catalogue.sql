-- catalogue_home --
-- The schema that a name without one means.
select (coalesce(cast(nullif(current_setting('eventlog.places', true), '') as name[]), current_schemas(false)))[1] as schema_name

-- catalogue_schemas --
-- All schemas.
select nspname as schema_name from pg_catalog.pg_namespace

-- catalogue_places --
-- The schemas in which a name without one is found, the first of them first.
select n.nspname as schema_name
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relname = :name and n.nspname = any (coalesce(cast(nullif(current_setting('eventlog.places', true), '') as name[]), current_schemas(false)))
order by array_position(coalesce(cast(nullif(current_setting('eventlog.places', true), '') as name[]), current_schemas(false)), n.nspname)

-- catalogue_log --
-- The columns of the log with their types.
select a.attname as column_name,
  pg_catalog.format_type(
    case t.typtype when 'd' then t.typbasetype else a.atttypid end,
    case t.typtype when 'd' then t.typtypmod else a.atttypmod end
  ) as type_name,
  case when l.collisdeterministic is false or pg_catalog.format_type(
    case t.typtype when 'd' then t.typbasetype else a.atttypid end, null) like '%citext' then 0 else 1 end as exact,
  1 as keyed,
  case when exists (
    select from pg_catalog.pg_index i
    where i.indrelid = a.attrelid and i.indkey[0] = a.attnum and i.indnkeyatts = 1
      and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null
  ) then 1 else 0 end as is_unique
from pg_catalog.pg_attribute a
join pg_catalog.pg_type t on t.oid = a.atttypid
left join pg_catalog.pg_collation l on l.oid = a.attcollation
where a.attrelid = pg_catalog.to_regclass('{log}') and a.attnum > 0 and not a.attisdropped
order by a.attnum

-- catalogue_tables --
-- The tables and views of a schema.
select n.nspname as schema_name, c.relname as table_name,
  case c.relkind when 'r' then 'table' when 'p' then 'partitioned' when 'v' then 'view'
    when 'm' then 'materialized view' else 'foreign table' end as kind
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f')
  and n.nspname = coalesce(:schema, n.nspname)
  and (:schema is not null or n.nspname = any (coalesce(cast(nullif(current_setting('eventlog.places', true), '') as name[]), current_schemas(false))))
order by 1, 2

-- catalogue_identity --
-- What a table is, by which it differs from another of its name, and who owns it.
select case c.relkind when 'r' then 'table' when 'p' then 'partitioned' when 'v' then 'view'
    when 'm' then 'materialized view' else 'foreign table' end as kind,
  cast(c.oid as text) as table_id, r.rolname as owner
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_roles r on r.oid = c.relowner
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname = :schema and c.relname = :table_name

-- catalogue_columns --
-- The columns of a table with their types.
-- the type under a domain; one of a user that is called like one of the server's has its schema
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

-- catalogue_key --
-- The columns of a table's primary key.
select a.attname as column_name, case when k.condeferrable then 1 else 0 end as is_deferrable
from pg_catalog.pg_constraint k
join pg_catalog.pg_class c on c.oid = k.conrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join lateral unnest(k.conkey) with ordinality u (attnum, place)
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = u.attnum
where n.nspname = :schema and c.relname = :table_name and k.contype = 'p'
order by u.place

-- catalogue_foreign_keys --
-- The foreign keys of a table, a line for each column.
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

-- catalogue_partitions --
-- The partitions of a table, at any depth.
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

-- catalogue_family --
-- The tables that a table inherits from or is inherited by.
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

-- catalogue_triggers --
-- The triggers of a table.
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

-- catalogue_marked --
-- The tables that have triggers of ours for this log.
-- ours: the function belongs to whom the record belongs to, and stands beside it
select n.nspname as schema_name, c.relname as table_name,
  max(case when p.proowner = r.relowner and p.pronamespace = r.relnamespace then 1 else 0 end) as ours
from pg_catalog.pg_trigger t
join pg_catalog.pg_proc p on p.oid = t.tgfoid
join pg_catalog.pg_class c on c.oid = t.tgrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join (
  pg_catalog.pg_class r join pg_catalog.pg_namespace rn on rn.oid = r.relnamespace
) on rn.nspname = :log_schema and r.relname = :record
where pg_catalog.strpos(p.prosrc, :mark) > 0 and pg_catalog.strpos(p.prosrc, :log) > 0 and not c.relispartition
group by 1, 2

-- catalogue_routines --
-- The routines of a schema, and what they do.
select p.proname as routine_name, pg_catalog.replace(p.prosrc, '''', '') as body
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname = :schema

-- catalogue_sees_routines --
-- One row, because no routine is hidden from anyone.
select 'all' as privilege where cast(:schema as text) is not null

-- catalogue_subscriptions --
-- The subscriptions that write to a table.
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

-- catalogue_owner --
-- Who owns the record of what is tracked, and whether that is a superuser.
select r.rolname as owner, case when r.rolsuper then 1 else 0 end as almighty
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_roles r on r.oid = c.relowner
where n.nspname = :schema and c.relname = :table_name
