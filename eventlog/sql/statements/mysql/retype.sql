-- by the key alone: another way reads, and locks, what writers have open
update {wanted_ids}
straight_join {log} r {by_key} on {record_id} = wanted.id and {letter} in ('E', 'F')
set r.{raw_event_type} = :type
/
