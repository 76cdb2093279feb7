-- by the key alone: another way reads, and locks, what writers have open
update {wanted_ids}
straight_join {log} r {by_key} on {record_id} = wanted.id and {event_type} in (1, 2, 3)
set r.{raw_event_type} = case {event_type} when 1 then 7 else 8 end
/
