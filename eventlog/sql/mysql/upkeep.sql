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
