-- compare_changed --
-- Rows whose values are not those that the receiver is known to have; few are looked up in the state by its primary key.
select h.key_text, {key_hash} as key_hash, h.digest, k.object_key, k.digest,
  (select v.row_values from {known} v where v.object_table = :object_table and v.key_hash = cast({key_hash} as char(32))) as row_values,
  k.failed, k.next_digest{texts}
from (
  select h.*, {digest} as digest
  from (select {key_text} as key_text{expressions} from {source} t{within}{unmerged}) h
) h
left join {known} k on k.object_table = :object_table and k.object_key = h.key_text and k.key_hash <> 'base'
  and ({is_whole} or k.key_hash = cast({key_hash} as char(32)))
where k.object_key is null
  or (k.first_id is null and k.digest <> h.digest)
  or (k.failed = 1 and (k.next_digest is null or k.next_digest <> h.digest))

-- compare_gone --
-- The objects that the receiver is known to have and the table lacks.
select k.object_key, k.key_hash, k.digest, k.row_values
from {known} k
where k.object_table = :object_table and k.key_hash <> 'base'
  and (k.first_id is null or (k.failed = 1 and k.next_digest is not null))
  and not exists (
    select null from (select {key_text} as key_text from {source} t) n where n.key_text = k.object_key)

-- known_letters --
-- The letters of the rows of events; of a row that failed alone it is R. The offset keeps rows looked up by their ids.
select k.first_id, case when f.record_id is not null and f.event_id is null then 'R' else r.letter end
from {known} k
cross join lateral (
  select {record_id} as record_id, {letter} as letter
  from {log} r
  where {record_id} between k.first_id and k.last_id and {table_key} = k.object_key and {table_name} = k.object_table
  offset 0) r
left join {failed} f on f.record_id = r.record_id
where k.first_id > :after and k.first_id <= :upto

-- known_forget_all --
-- Forgets objects.
delete from {known} k
using json_to_recordset(cast(:rows as json)) as g (object_table text, key_hash char(32))
where k.object_table = g.object_table and k.key_hash = g.key_hash

-- known_put_all --
-- Keeps what the receiver has of objects, and to what their events lead, in place of what was kept of them.
insert into {known} (object_table, key_hash, object_key, digest, row_values, next_digest, next_values, first_id, last_id)
select object_table, key_hash, object_key, digest, row_values, next_digest, next_values, first_id, last_id
from json_to_recordset(cast(:rows as json)) as g (
  object_table text, key_hash text, object_key text, digest text, row_values text, next_digest text, next_values text,
  first_id bigint, last_id bigint)
on conflict (object_table, key_hash) do update set
  object_key = excluded.object_key, digest = excluded.digest, row_values = excluded.row_values,
  next_digest = excluded.next_digest, next_values = excluded.next_values,
  first_id = excluded.first_id, last_id = excluded.last_id, failed = 0

-- known_next_all --
-- Keeps to what the events of objects lead that are known already.
update {known} k
set next_digest = g.next_digest, next_values = g.next_values, first_id = g.first_id, last_id = g.last_id, failed = 0
from json_to_recordset(cast(:rows as json)) as g (
  object_table text, key_hash char(32), next_digest text, next_values text, first_id bigint, last_id bigint)
where k.object_table = g.object_table and k.key_hash = g.key_hash

-- compare_log_all --
-- Logs rows about objects, which nobody's user wrote.
insert into {log} ({raw_event_type}, {raw_perpetrator}, {raw_table_name}, {raw_table_key}, {raw_column_name}, {raw_old_value}, {raw_new_value})
select g.event_type, g.perpetrator, g.table_name, g.table_key, g.column_name, g.old_value, g.new_value
from rows from (json_to_recordset(cast(:rows as json)) as (
  event_type integer, perpetrator text, table_name text, table_key text, column_name text, old_value text, new_value text
)) with ordinality g (event_type, perpetrator, table_name, table_key, column_name, old_value, new_value, n)
order by g.n

-- compare_segments --
-- The rows of each segment of a table, and two sums of 64-bit hashes of their texts. More work_mem keeps the sums of all
-- segments in memory. The volatile function has the text made once, and does not exclude parallel workers as offset does.
set local work_mem = '64MB'
/
{functions}select h.segment, pg_catalog.count(*),
  pg_catalog.sum(pg_catalog.hashtextextended(h.row_text, 1)),
  pg_catalog.sum(pg_catalog.hashtextextended(h.row_text, 2))
from (
  select {segment} as segment, ({row_text}) collate pg_catalog."C" as row_text, pg_catalog.clock_timestamp()
  from {source} t
  where {within}
) h
group by h.segment
/

-- compare_digests --
-- The rows of each segment of a table, and sums of the halves of their digests, as others make them, too.
set local work_mem = '64MB'
/
{functions}select h.segment, pg_catalog.count(*),
  pg_catalog.sum(('x' || pg_catalog.substr(h.hash, 1, 16))::bit(64)::bigint),
  pg_catalog.sum(('x' || pg_catalog.substr(h.hash, 17, 16))::bit(64)::bigint)
from (
  select {segment} as segment, {digest} as hash, pg_catalog.clock_timestamp()
  from {source} t
  where {within}
) h
group by h.segment
