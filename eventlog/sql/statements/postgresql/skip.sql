update {log} r set {raw_status} = 'W'
from {wanted_ids}
where {record_id} = wanted.id and {letter} in ('N', 'E', 'F')
/
