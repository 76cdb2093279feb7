-- snapshot --
-- Begins a transaction that sees one moment and writes nothing.
begin isolation level repeatable read, read only

-- share_snapshot --
-- The name by which other sessions see what this one sees.
select pg_export_snapshot()

-- join_snapshot --
-- Begins a transaction that sees what the session of this name sees.
begin isolation level repeatable read, read only
/
set transaction snapshot '{snapshot}'
/

-- expect_kind --
-- Has the server refuse views: before PostgreSQL 16 a table may become one under its number.
select case
  when cast(pg_catalog.current_setting('server_version_num') as integer) < 160000
    and pg_catalog.current_setting('restrict_nonsystem_relation_kind', true) is not null
  then pg_catalog.set_config('restrict_nonsystem_relation_kind', {refused}, true)
end
/

-- log_position --
-- The last record_id that the log's sequence gave, its end, and whether it gave any.
select
  case when pg_catalog.has_sequence_privilege(s.oid, 'USAGE, SELECT')
    then coalesce(pg_catalog.pg_sequence_last_value(s.oid), q.seqstart - 1) end,
  q.seqmax,
  case when pg_catalog.has_sequence_privilege(s.oid, 'USAGE, SELECT')
    then case when pg_catalog.pg_sequence_last_value(s.oid) is null then 0 else 1 end end
from pg_catalog.pg_sequence q
join pg_catalog.pg_class s on s.oid = q.seqrelid
join pg_catalog.pg_depend d on d.objid = s.oid and d.classid = 'pg_catalog.pg_class'::regclass
join pg_catalog.pg_class c on c.oid = d.refobjid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid
where n.nspname = {schema_text} and c.relname = {log_text} and a.attname = {record_id_name} and d.deptype in ('a', 'i')

-- advance_position --
-- Sets the log's sequence past a record_id.
select pg_catalog.setval(s.oid, {past}, true)
from pg_catalog.pg_class s
join pg_catalog.pg_depend d on d.objid = s.oid and d.classid = 'pg_catalog.pg_class'::regclass
join pg_catalog.pg_class c on c.oid = d.refobjid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid
where n.nspname = {schema_text} and c.relname = {log_text} and a.attname = {record_id_name}
  and d.deptype in ('a', 'i') and s.relkind = 'S'

-- packed --
-- The result of another statement as one row, by column.
select
  {aggregates}
from (
{statement}
) as q ({names})

-- gap_edges --
-- The first new row between the ranges of what is done, and where the last gap ends that has some.
select min(r.found), max(gap.high)
from {gaps}
cross join lateral (
  select l.{raw_record_id} as found from {log} l
  where l.{raw_record_id} between gap.low and gap.high and l.{raw_status} = 'N'
  order by l.{raw_record_id}
  limit 1
) r
