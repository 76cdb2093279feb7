-- log_bytes --
-- The bytes of the log and the tables next to it, with their indexes.
select cast(sum(data_length + index_length) as signed)
from information_schema.tables
where table_schema = {schema_text} and table_name in (
  {log_text},
  {batch_text},
  {retry_text},
  {held_text},
  {failed_text},
  {notice_text},
  {known_text},
  {answer_text},
  {try_text},
  {sent_text},
  {resync_text},
  {tracked_text},
  {state_text}
)

-- renew --
-- Makes failed rows new again.
-- by the key alone: another way reads, and locks, what writers have open
update {wanted_ids}
straight_join {log} r {by_key} on {record_id} = wanted.id and {letter} in ('E', 'F')
set r.{raw_status} = 'N'

-- retype --
-- Gives failed rows another event type.
-- by the key alone: another way reads, and locks, what writers have open
update {wanted_ids}
straight_join {log} r {by_key} on {record_id} = wanted.id and {letter} in ('E', 'F')
set r.{raw_event_type} = :type

-- skip --
-- Gives rows up, with the letter W.
-- by the key alone: another way reads, and locks, what writers have open
update {wanted_ids}
straight_join {log} r {by_key} on {record_id} = wanted.id and {letter} in ('N', 'E', 'F')
set r.{raw_status} = 'W'

-- purge --
-- Deletes rows with some letters.
-- by the key alone: another way reads, and locks, what writers have open
delete r from {wanted_ids}
straight_join {log} r {by_key} on {record_id} = wanted.id and {letter} in ({letters})
