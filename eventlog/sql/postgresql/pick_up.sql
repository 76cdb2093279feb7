-- snapshot --
-- Begins a transaction that sees one moment and writes nothing.
begin isolation level repeatable read, read only

-- lock_tables --
-- Keeps DDL away from tables that it changed under the readings before.
set local lock_timeout to '1s'
/
lock table {tables} in access share mode
/
set local lock_timeout to default
/

-- table_forms --
-- What tables are in this snapshot; unless every one is asked for, no plain one whose file is still the same.
-- The parameters are in queries of their own, so that the server plans this once, not at each reading.
with recursive named as (
  select w.schema_name, w.table_name, c.oid, c.relkind
  from unnest((select cast(:schemas as text[])), (select cast(:names as text[]))) as w (schema_name, table_name)
  left join pg_catalog.pg_namespace s on s.nspname = w.schema_name
  left join pg_catalog.pg_class c on c.relnamespace = s.oid and c.relname = w.table_name
  where (select cast(:every as boolean)) or not coalesce(
    c.relkind = 'r' and not c.relhassubclass
    and c.oid = pg_catalog.to_regclass(pg_catalog.format('%I.%I', w.schema_name, w.table_name))
    and c.relfilenode = pg_catalog.pg_relation_filenode(c.oid), false)
), part (schema_name, table_name, oid, relkind) as (
  select schema_name, table_name, oid, relkind from named where oid is not null
  union
  select part.schema_name, part.table_name, c.oid, c.relkind
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
select n.schema_name, n.table_name, (
  select string_agg(line, ',' order by line)
  from (
    select concat_ws(':', c.oid, c.relkind, c.relfilenode, c.relrowsecurity,
      (select string_agg(concat_ws('/', i.inhparent, i.xmin), '+' order by i.inhparent)
        from pg_catalog.pg_inherits i where i.inhrelid = c.oid),
      (select w.xmin from pg_catalog.pg_rewrite w
        where c.relkind = 'v' and w.ev_class = c.oid and w.rulename = '_RETURN')) as line
    from part p
    join pg_catalog.pg_class c on c.oid = p.oid
    where p.schema_name = n.schema_name and p.table_name = n.table_name
  ) lines
) as form
from named n

-- expect_kind --
-- Has the server refuse views: before PostgreSQL 16 a table may become one under its number.
select case
  when cast(pg_catalog.current_setting('server_version_num') as integer) < 160000
    and pg_catalog.current_setting('restrict_nonsystem_relation_kind', true) is not null
  then pg_catalog.set_config('restrict_nonsystem_relation_kind', {refused}, true)
end
/

-- log_position --
-- The last record_id that the log's sequence gave, and whether it gave any.
select
  case when pg_catalog.has_sequence_privilege(s.oid, 'USAGE, SELECT')
    then coalesce(pg_catalog.pg_sequence_last_value(s.oid), q.seqstart - 1) end,
  case when pg_catalog.has_sequence_privilege(s.oid, 'USAGE, SELECT')
    then case when pg_catalog.pg_sequence_last_value(s.oid) is null then 0 else 1 end end
from pg_catalog.pg_sequence q
join pg_catalog.pg_class s on s.oid = q.seqrelid
join pg_catalog.pg_depend d on d.objid = s.oid and d.classid = cast('pg_catalog.pg_class' as regclass)
join pg_catalog.pg_class c on c.oid = d.refobjid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid
where n.nspname = {schema_text} and c.relname = {log_text} and a.attname = {record_id_name} and d.deptype in ('a', 'i')

-- advance_position --
-- Sets the log's sequence past a record_id.
select setval(pg_get_serial_sequence({log_name}, {record_id_name}), {past})

-- packed --
-- The result of another statement as one row, by column.
select
  {aggregates}
from (
{statement}
) as q ({names})

-- number_transaction --
-- The number of our transaction, which gets one by this.
select cast(cast(pg_catalog.pg_current_xact_id() as text) as bigint)

-- ids_ascend --
-- Whether no row can get a lower record_id than one that was drawn before: only our own log's sequence gives them.
select count(*)
from {state} l
join pg_catalog.pg_class c on c.relname = {log_text}
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname = {schema_text}
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = {record_id_name} and a.attidentity = 'a'
join pg_catalog.pg_depend d on d.refobjid = c.oid and d.refobjsubid = a.attnum and d.deptype in ('a', 'i')
  and d.classid = cast('pg_catalog.pg_class' as regclass)
join pg_catalog.pg_sequence q on q.seqrelid = d.objid and q.seqincrement > 0 and q.seqcache = 1 and not q.seqcycle
where l.one = 1 and l.attached = 0
