update {log} r set {raw_event_type} = case {event_type} when 1 then 7 else 8 end
where {record_id} {among_ids} and {event_type} in (1, 2, 3)
/
