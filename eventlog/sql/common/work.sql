-- work --
-- Begins a transaction that sees what others commit meanwhile.
set transaction isolation level read committed

-- epoch --
-- The epoch of the leader, kept from changing until our transaction ends.
select epoch from {state} where one = 1 {share_lock}

-- demand_epoch --
-- Our epoch, kept from changing until our transaction ends; nothing if another leads, or documents leave in a pause.
select epoch from {state} where one = 1 and epoch = :epoch and (paused_at is null or :leaves = 0) {share_lock}

-- demand_redrive --
-- The notice of the last redrive; nothing if it is another one.
select notice_id
from (select coalesce(max(notice_id), 0) as notice_id from {notice} where kind = 'redrive') redrive
where notice_id = :redriven

-- demand_none_due --
-- One; nothing if an event is due by then.
select one from {state} where one = 1 and not exists (select null from {retry} where next_at <= :due)

-- finish --
-- Gives new rows their letter.
update {log} r set {raw_status} = :letter
where {of_ids} and {is_new}

-- finish_range --
-- Gives the new rows of a range their letter.
update {log} r {by_key} set {raw_status} = :letter
where {record_id} between :low and :high and {is_new}

-- remove --
-- Deletes new rows that were handled.
delete from {log} r
where {of_ids} and {is_new}

-- remove_range --
-- Deletes the new rows of a range, which were handled.
delete from {log} r
where {record_id} between :low and :high and {is_new}

-- pending_among --
-- The rows among these that are new.
select {id} from {log} r where {record_id} {among_ids} and {is_new}

-- fail --
-- Keeps why a row failed.
insert into {failed} (record_id, event_id, reason, document, tries)
values (:record_id, :event_id, :reason, :document, :tries)

-- forget_failure --
-- Forgets why rows failed.
delete from {failed} where record_id {among_ids}

-- tries_of --
-- The tries of rows, with the answers' places.
select t.record_id, t.try_number, t.batch, t.part
from {try} t
where t.record_id {among_ids}
order by t.record_id, t.try_number

-- last_part --
-- The number of the last answer that a batch has on record.
select coalesce(max(part), 0) from {answer} where batch = :batch

-- keep_answer --
-- Keeps an answer, with the time at which it came, or is kept.
insert into {answer} (batch, part, answer, words, answered_at)
values (:batch, :part, :answer, :words, coalesce(:answered_at, {utc_now}))

-- keep_try --
-- Keeps a try of a row, with its answer.
insert into {try} (record_id, try_number, event_id, batch, part)
values (:record_id, :try_number, :event_id, :batch, :part)

-- drop_try --
-- Drops one try of a row.
delete from {try} where record_id = :record_id and try_number = :try_number

-- forget_tries --
-- Forgets the tries of rows.
delete from {try} where record_id {among_ids}

-- forget_answers --
-- Forgets the answers of batches that no try has any more.
delete from {answer}
where batch {among_ids}
  and (batch, part) not in (select t.batch, t.part from {try} t where t.batch {among_ids})

-- tried_pending --
-- The new rows that have tries on record.
select distinct {record_id}
from {try} t join {log} r on {record_id} = t.record_id
where {is_new}
{first_rows}

-- remember --
-- Keeps what is about to go out.
insert into {batch} (batch, epoch, first_id, last_id, content) values (:batch, :epoch, :first_id, :last_id, :content)

-- settle --
-- Keeps what went out and was answered, for those who ask what became of a row.
update {batch} set settled_at = {utc_now} where batch = :batch

-- forget_batch --
-- Forgets what was about to go out.
delete from {batch} where batch = :batch

-- adopt --
-- Makes what a former leader remembered our own.
update {batch} set epoch = :epoch where settled_at is null

-- note_highest --
-- Keeps the highest record_id that went out. A row is added, because the versions of one that is changed
-- pile up while somebody keeps an old snapshot open.
insert into {sent} (record_id)
select :highest
from (select 1 as one{dual}) always
where not exists (select null from {sent} h where h.record_id >= :highest)

-- forget_lower --
-- Forgets the record_ids that were the highest, from one on.
delete from {sent} where record_id >= :former and record_id < :highest

-- hold --
-- Keeps an event to be sent again later.
insert into {retry} (
  object_hash, first_id, event_id, object_table, object_key, record_ids, max_changes, tries, next_at, reason)
values (
  :object_hash, :first_id, :event_id, :table_name, :table_key, :record_ids, :max_changes, :tries, :next_at, :reason)

-- hold_spelling --
-- Holds an object under a spelling that its rows have.
insert into {held} (object_hash, spelling_hash, table_name, table_key)
values (:object_hash, :spelling_hash, :table_name, :table_key)

-- forget_event --
-- Forgets an event that waits.
delete from {retry} where object_hash = :object_hash and event_id = :event_id

-- forget_spelling --
-- Forgets one spelling of an object.
delete from {held} where object_hash = :object_hash and spelling_hash = :spelling_hash

-- forget_spellings --
-- Forgets all spellings of an object that has no event left that waits.
delete from {held}
where object_hash = :object_hash
  and not exists (select null from {retry} r where r.object_hash = :object_hash)

-- spelled_by_id --
-- How rows spell their objects.
select {record_id}, {table_name}, {table_key}
from {log} r
where {record_id} {among_ids}

-- every_retry --
-- Every event that waits, with the object that it is kept under.
select object_hash, first_id, event_id, object_table, object_key, record_ids
from {retry}

-- retry_reasons --
-- The events whose wait is not over, and why they wait.
select event_id, object_hash, reason from {retry} where next_at > {utc_now}

-- rename_retry --
-- Keeps an event that waits under another name of its object.
update {retry}
set object_hash = :new_hash, first_id = :new_id, object_table = :table_name, object_key = :table_key
where object_hash = :object_hash and first_id = :first_id

-- spellings_of --
-- The spellings under which an object is held.
select table_name, table_key from {held} where object_hash = :object_hash

-- record_cycle --
-- Keeps what `status` tells of the last cycle.
update {state} set cycle_at = {utc_now}, cycle_facts = :facts where one = 1

-- record_rest --
-- Keeps when the publisher began to rest.
update {state} set rested_at = {utc_now} where one = 1

-- record_settings --
-- Keeps the settings of the leader.
update {state} set published_as = :settings where one = 1

-- record_heartbeat --
-- Keeps when the last heartbeat went out.
update {state} set heartbeat_at = {utc_now} where one = 1

-- brake_noted --
-- Which tables an operator let pass the brake on deletes, and which have passed it; the last notice last.
select table_name, kind from {notice} where kind in ('resume', 'pass') and table_name is not null order by notice_id
