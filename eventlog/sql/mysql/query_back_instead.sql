update {wanted_ids}
straight_join {log} on {record_id} = wanted.id and {event_type} in (1, 2, 3)
set {event_type} = case {event_type} when 1 then 7 else 8 end
/
