-- last_of_objects --
-- The last row of each type and column of the objects of these rows, behind the first of them.
-- by a digest: texts of any length are compared one with another
select max({id}), {event_type}, {table_name}, {table_key}, {column_name}
from {log} r
where {usable} and {record_id} > :first and {conditions}
  and sha2(concat(convert({table_name} using utf8mb4), char(0), convert({table_key} using utf8mb4)), 256) in (
    select sha2(concat(convert({table_name} using utf8mb4), char(0), convert({table_key} using utf8mb4)), 256)
    from {log} r
    where {record_id} {among_ids})
group by {event_type}, {table_name}, {table_key}, {column_name}

-- mark_overtaken --
-- Notes that failed rows were overtaken by rows that leave the log.
update {wanted_ids}
straight_join {failed} f on f.record_id = wanted.id
set f.overtaken = 1

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
