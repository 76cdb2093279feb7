update {log} r set {raw_event_type} = case {event_type} when 1 then 7 else 8 end
from {wanted_ids}
where {record_id} = wanted.id and {event_type} in (1, 2, 3)
/
