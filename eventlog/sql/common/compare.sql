-- compare_rows --
-- The key and the texts of every row of a table.
{functions}select
  {columns}
from {source} t
where {within}

-- compare_changed --
-- The rows of a table whose values are not those that the receiver is known to have.
select h.key_text, h.key_hash, h.digest, k.key_hash, k.digest,
  (select v.row_values from {known} v where v.object_table = :object_table and v.key_hash = h.key_hash) as row_values,
  k.failed, k.next_digest{texts}
from (
  select h.*, {digest} as digest, {key_hash} as key_hash
  from (select {key_text} as key_text{expressions} from {source} t{within}{unmerged}) h
) h
left join {known} k on k.object_table = :object_table and k.key_hash = h.key_hash
where k.key_hash is null
  or (k.first_id is null and k.digest <> h.digest)
  or (k.failed = 1 and (k.next_digest is null or k.next_digest <> h.digest))

-- compare_waiting --
-- The objects among these whose event is on its way.
select key_hash
from {known}
where object_table = :object_table and key_hash in ({hashes}) and first_id is not null

-- compare_gone --
-- The objects that the receiver is known to have and the table lacks.
select k.object_key, k.key_hash, k.digest, k.row_values
from {known} k
left join (
  select distinct {key_hash} as key_hash -- distinct has it made once, with a key of its own
  from (select {key_text} as key_text from {source} t{unmerged}) h
) n on n.key_hash = k.key_hash
where k.object_table = :object_table and k.key_hash <> 'base' and n.key_hash is null
  and (k.first_id is null or (k.failed = 1 and k.next_digest is not null))

-- compare_count --
-- How many rows a table has.
select count(*) from {source} t

-- known_of --
-- What the receiver is known to have of a table, but for objects whose event is on its way.
select object_key, key_hash, digest, row_values, failed, next_digest, first_id
from {known}
where object_table = :object_table and key_hash <> 'base'

-- known_counts --
-- How many objects of each table are in the state.
select k.object_table, count(case when k.key_hash <> 'base' then 1 end)
from {known} k
group by k.object_table

-- known_bases --
-- What is on record of each table's state as a whole.
select object_table, row_values from {known} where key_hash = 'base'

-- known_page --
-- Objects whose event is on its way or failed, in the order of these events.
select first_id, last_id, object_table, key_hash, digest, next_digest, failed
from {known}
where first_id > :after
order by first_id
{first_rows}

-- known_letters --
-- The letters of the rows of events; of a row that failed alone it is R. MySQL and MariaDB look up rows by their ids only in
-- this order of the join.
select /*! straight_join */ k.first_id, case when f.record_id is not null and f.event_id is null then 'R' else {letter} end
from {known} k
join {log} r on {record_id} between k.first_id and k.last_id and {table_key} = k.object_key
left join {failed} f on f.record_id = {record_id}
where k.first_id > :after and k.first_id <= :upto and case when {table_name} = k.object_table then 1 else 0 end = 1

-- known_renewed --
-- Marks as on its way what failed and was made new again. What the receiver has of it is unknown from here on.
update {known}
set digest = case when digest is null or digest in ('??', '???') then '??' else '?' end, row_values = null,
  next_digest = case when next_digest is null then null else '?' end, next_values = null, failed = 0
where object_table = :object_table and key_hash in :hashes

-- known_failed --
-- Marks the objects whose event failed.
update {known} set failed = 1 where object_table = :object_table and key_hash in :hashes

-- known_partly --
-- Marks the objects of whose event some rows failed and the others were sent.
update {known} set digest = '?', row_values = null, failed = 1 where object_table = :object_table and key_hash in :hashes

-- known_unsure --
-- Marks the objects that the receiver may lack, and whose add it refused.
update {known} set digest = '??', failed = 1 where object_table = :object_table and key_hash in :hashes

-- known_lacking --
-- Marks the objects to be added of which the receiver refused a change, because it may lack them.
update {known} set digest = '???', row_values = null, next_digest = '?', next_values = null, failed = 1
where object_table = :object_table and key_hash in :hashes

-- known_resent --
-- Marks the objects as unknown whose event failed, was made new again and sent between two polls.
update {known}
set digest = case when digest is null then '??' else '?' end, row_values = null, next_digest = null, next_values = null, first_id = null, last_id = null, failed = 0
where object_table = :object_table and key_hash in :hashes

-- known_settled --
-- Gives the objects whose event was settled the values to which it led. A redriven add may have found no row to send.
update {known}
set digest = case when digest in ('??', '???') and next_digest = '?' then '??' else next_digest end, row_values = next_values, next_digest = null, next_values = null, first_id = null, last_id = null
where object_table = :object_table and key_hash in :hashes

-- known_gone --
-- Forgets the objects whose delete was settled.
delete from {known} where object_table = :object_table and key_hash in :hashes

-- known_among --
-- What is known of these objects.
select key_hash, digest, next_digest, first_id, last_id, failed
from {known}
where object_table = :object_table and key_hash in :hashes

-- known_given_up --
-- Marks an object whose event was given up. If the event was on its way, its outcome is unknown.
update {known}
set digest = case when failed = 1 then digest when digest is null or digest in ('??', '???') or next_digest is null then '??' else '?' end,
  row_values = case when failed = 0 then null else row_values end,
  failed = 1
where object_table = :object_table and key_hash = :key_hash and first_id <= :last_id and last_id >= :first_id

-- compare_among --
-- The objects of these rows; a delete has its event type.
select {id}, {event_type}, {table_name}, {table_key}
from {log} r
where {record_id} {among_ids}
order by {record_id}

-- known_doubt --
-- Takes the values of the objects that no event is on its way for as unknown.
update {known}
set digest = case when digest is null or digest in ('??', '???') then digest else '?' end, row_values = null,
  next_digest = case when failed = 1 and next_digest is not null then '?' else next_digest end
where key_hash <> 'base' and (first_id is null or failed = 1)

-- known_forget --
-- Forgets one object.
delete from {known} where object_table = :object_table and key_hash = :key_hash

-- known_next --
-- Keeps to what the event of an object leads that is known already.
update {known}
set next_digest = :next_digest, next_values = :next_values, first_id = :first_id, last_id = :last_id, failed = 0
where object_table = :object_table and key_hash = :key_hash

-- known_forget_table --
-- Forgets what is known of a table.
delete from {known} where object_table = :object_table

-- compare_log --
-- Logs a row about an object, which nobody's user wrote.
insert into {log} ({raw_event_type}, {raw_perpetrator}, {raw_table_name}, {raw_table_key}, {raw_column_name}, {raw_old_value}, {raw_new_value})
values (:event_type, :perpetrator, :table_name, :table_key, :column_name, :old_value, :new_value)

-- compare_logged --
-- The first and the last row of each object behind a record_id.
select {table_name}, {table_key}, min({id}), max({id})
from {log} r
where {record_id} > :after
group by {table_name}, {table_key}

-- compared_before --
-- The tables of which a state was begun, as notices tell.
select distinct table_name from {notice} where kind = 'compare'

-- compare_newest --
-- The highest record_id in the log.
select max({id}) from {log} r

-- compare_named --
-- The objects that rows behind a record_id name.
select distinct {table_name}, {table_key}
from {log} r
where {record_id} > :after

-- compare_purged --
-- The last notice that rows were purged or that handled ones may be gone.
select max(notice_id) from {notice} where kind = 'purge'
