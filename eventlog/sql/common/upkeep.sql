-- state --
-- What the leader and `pause` left on record.
select
  epoch, leader, leader_since, paused_at, paused_by, pause_reason, rested_at, cycle_at, cycle_facts, heartbeat_at,
  published_as
from {state}
where one = 1

-- paused --
-- Since when the publisher is paused.
select paused_at from {state} where one = 1

-- counts --
-- How many rows each status and table has, and how many of them are from after a time.
select {letter}, {table_name}, count(*), sum(case when {event_time_utc} > :since then 1 else 0 end)
from {log} r
group by {letter}, {table_name}
order by {letter}, {table_name}

-- unpublished --
-- How many rows are not published.
select count(*) from {log} r where {letter} in ('N', 'E', 'F')

-- unpublished_of --
-- How many rows of a table_name are not published.
select count(*) from {log} r where {letter} in ('N', 'E', 'F') and {table_name} = :table_name

-- backlog --
-- How many rows are new and can be finished, the earliest time among them, and both of those that wait.
select count(*), {oldest}, sum(is_held), {oldest_held}, {oldest_moving}
from (
  select case when {not_held} then 0 else 1 end as is_held, {event_time_utc} as happened_at
  from {log} r
  where {is_new} and {usable}
) new_rows

-- pending_count --
-- The time, how many rows are new and can be finished, and how many were redriven so far.
select {utc_now}, p.pending, n.redriven
from (select count(*) as pending from {log} r where {is_new} and {usable}) p
cross join (select sum(row_count) as redriven from {notice} where kind = 'redrive') n

-- next_retry --
-- When the next event is sent again, and how many wait.
select min(next_at), count(*) from {retry}

-- log_bytes --
-- The bytes of the log and the tables next to it, with their indexes, where the database reports them.
select null from {state} where one = 1

-- failures --
-- Rows that failed, and why.
select {id}, {letter}, {event_type}, {table_name}, {table_key}, {column_name},
  f.event_id, f.reason, f.document, f.tries, f.failed_at
from {log} r left join {failed} f on f.record_id = {record_id}
where {conditions}
order by {record_id}
{first_rows}

-- latest_failures --
-- Rows that failed, and why, without their documents.
select {id}, {letter}, {event_type}, {table_name}, {table_key}, {column_name},
  f.event_id, f.reason, null, f.tries, f.failed_at
from {log} r left join {failed} f on f.record_id = {record_id}
where {conditions}
order by {record_id} desc
{first_rows}

-- failed_groups --
-- The beginnings of reasons, with how many rows have each.
select substr(f.reason, 1, 200) as reason_begins, count(*)
from {log} r left join {failed} f on f.record_id = {record_id}
where {conditions}
group by substr(f.reason, 1, 200)
order by count(*) desc, reason_begins
{first_rows}

-- failed_count --
-- How many rows failed for reasons that are kept.
select count(*) from {failed}

-- failed_tables --
-- The tables of the first rows that failed for reasons that are kept, with how many rows of each.
select {table_name}, count(*)
from (select record_id from {failed} order by record_id {first_rows}) f
join {log} r on {record_id} = f.record_id
where {letter} in ('E', 'F')
group by {table_name}

-- unexplained --
-- How many rows failed without a reason that is kept.
select count(*)
from {log} r left join {failed} f on f.record_id = {record_id}
where {letter} in ('E', 'F') and f.record_id is null

-- failed_before --
-- Why rows failed, with their letters.
select f.record_id, {letter}, f.event_id, f.reason, f.failed_at
from {failed} f join {log} r on {record_id} = f.record_id
where f.record_id {among_ids}

-- first_place --
-- The lowest number of a batch among the answers on record.
select coalesce(min(batch), 0) from {answer}

-- answers_to --
-- The answers to rows, with their tries, oldest first.
select t.record_id, t.try_number, t.event_id, a.answer, a.words, a.answered_at, t.batch
from {try} t join {answer} a on a.batch = t.batch and a.part = t.part
where t.record_id {among_ids}
order by t.record_id, t.try_number

-- answers_last --
-- The answers of the batch before one that has any.
select a.batch, a.part, a.answer, a.words, a.answered_at
from {answer} a
where a.batch = (select max(b.batch) from {answer} b where b.batch < :before and b.batch > 0)
order by a.part

-- answered_with --
-- The rows that have an answer, with their events.
select t.event_id, t.record_id
from {try} t
where t.batch = :batch and t.part = :part
order by t.record_id

-- refused_last --
-- The rows whose last try on record was refused.
select t.record_id
from {try} t join {answer} a on a.batch = t.batch and a.part = t.part
where a.answer in ('error', 'fatal')
  and not exists (
    select null from {try} later where later.record_id = t.record_id and later.try_number > t.try_number)

-- rows_tried --
-- The rows that have tries on record.
select distinct record_id from {try}

-- failed_together --
-- The rows that failed in the events of these rows.
select record_id, event_id
from {failed}
where event_id in (select event_id from {failed} where record_id {among_ids})

-- relatives --
-- Every row of the objects of these rows, with the event that it failed in.
select {id}, {event_type}, {letter}, {table_name}, {table_key}, {column_name}, f.event_id
from {log} r left join {failed} f on f.record_id = {record_id}
where {usable} and ({table_name}, {table_key}) in (
  select {table_name}, {table_key}
  from {log} r
  where {record_id} {among_ids})
order by {record_id}

-- renew --
-- Makes failed rows new again.
update {log} r set {raw_status} = 'N'
where {record_id} {among_ids} and {letter} in ('E', 'F')

-- retype --
-- Gives failed rows another event type.
update {log} r set {raw_event_type} = :type
where {record_id} {among_ids} and {letter} in ('E', 'F')

-- skip --
-- Gives rows up, with the letter W.
update {log} r set {raw_status} = 'W'
where {record_id} {among_ids} and {letter} in ('N', 'E', 'F')

-- retries_of --
-- The events that wait under a spelling.
select w.object_hash, w.event_id, w.record_ids
from {retry} w
where w.object_hash in (select h.object_hash from {held} h where h.spelling_hash = :spelling_hash)

-- handled_before --
-- Rows with some letters from before a time, a chunk of them.
select {id}
from {log} r
where {record_id} > :after and {letter} in ({letters}) and {event_time_utc} < :before and {usable}
order by {record_id}
{first_rows}

-- purge --
-- Deletes rows with some letters.
delete from {log} r
where {record_id} {among_ids} and {letter} in ({letters})

-- settled_with --
-- The batches that were settled and may have some of these rows, oldest first.
select b.batch, b.epoch, b.settled_at, b.content
from {batch} b
where b.settled_at is not null
  and exists (select null from {wanted_ids} where wanted.id between b.first_id and b.last_id)
order by b.batch

-- settled_last --
-- The batches that were settled last, newest first, before one.
select b.batch, b.epoch, b.settled_at, b.content
from {batch} b
where b.settled_at is not null and b.batch < :before
order by b.batch desc
{first_rows}

-- settled_before --
-- The batches that were settled before a time, a chunk of them.
select batch from {batch} where settled_at < :before order by batch
{first_rows}

-- forget_settled --
-- Forgets batches that were settled before a time.
delete from {batch} where settled_at < :before and batch <= :upto

-- row_facts --
-- What a notice may have of rows.
select {id}, {letter}, {table_name}, {table_key}, f.event_id
from {log} r left join {failed} f on f.record_id = {record_id}
where {record_id} {among_ids}
order by {record_id}

-- lock_state --
-- Keeps the leader from writing until our transaction ends.
select one from {state} where one = 1 for update

-- pause --
-- Asks the publisher to rest.
update {state} set paused_at = {utc_now}, paused_by = :who, pause_reason = :reason, rested_at = null where one = 1

-- resume --
-- Lets the publisher go on.
update {state} set paused_at = null, paused_by = null, pause_reason = null where one = 1 and paused_at is not null

-- note --
-- Leaves a notice.
insert into {notice} (
  kind, table_name, table_key, first_id, last_id, row_count, record_ids, event_id, answer, who, words)
values (
  :kind, :table_name, :table_key, :first_id, :last_id, :row_count, :record_ids, :event_id, :answer, :who, :words)

-- notices --
-- The notices under a condition that were left last, newest first.
select
  kind, table_name, table_key, first_id, last_id, row_count, record_ids, event_id, answer, who, words,
  noticed_at, username, session_id
from {notice} n
where {conditions}
order by notice_id desc
{first_rows}

-- try_now --
-- Lets an event that waits be sent again now.
update {retry} set next_at = {utc_now} where object_hash = :object_hash and event_id = :event_id

-- tried_after --
-- The newest notice after one that has waiting events sent again: of some or all of them, or only of all.
select max(n.notice_id)
from {notice} n
where n.notice_id > :after and n.kind = 'retry' and (n.first_id is null or :only_all = 0)

-- of_skips --
-- The notices of skips.
n.kind = 'skip'

-- about_rows --
-- The notices that may have some of these rows.
n.record_ids is not null
  and exists (select null from {wanted_ids} where wanted.id between n.first_id and n.last_id)

-- of_kind --
-- The notices of one kind.
n.kind = :kind

-- letters --
-- The rows of the log after a record_id, with their letters.
select {id} as record_id, {letter} as status
from {log} r
where {record_id} > :after and {usable}
order by {record_id}
{first_rows}

-- audited_rows --
-- The rows of the log after a record_id; of type 2 whether both values are the same, and no values.
select
  {id} as record_id,
  {letter} as status,
  {event_type} as event_type,
  {perpetrator} as perpetrator,
  {table_name} as table_name,
  {table_key} as table_key,
  {column_name} as column_name,
  case when {event_type} = 2 and ({same_values} or ({old_value} is null and {new_value} is null))
    then 1 else 0 end as says_nothing
from {log} r
where {record_id} > :after and {usable}
order by {record_id}
{first_rows}

-- journal --
-- Batches after one, the first of them, and when they were put on record.
select b.batch, b.epoch, b.settled_at, b.content, b.remembered_at
from {batch} b
where b.batch > :after
order by b.batch
{first_rows}

-- failure_reasons --
-- Why rows failed.
select record_id, reason from {failed}
