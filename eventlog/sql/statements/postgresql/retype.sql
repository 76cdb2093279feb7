update {log} r set {raw_event_type} = :type
from {wanted_ids}
where {record_id} = wanted.id and {letter} in ('E', 'F')
/
