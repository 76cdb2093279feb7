-- by the key alone: another way reads, and locks, what writers have open
update {wanted_ids}
straight_join {log} force index (primary) on {record_id} = wanted.id and {event_type} in (1, 2, 3)
set {event_type} = case {event_type} when 1 then 7 else 8 end
/
