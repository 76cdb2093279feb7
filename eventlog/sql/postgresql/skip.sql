update {log} set {status} = 'W'
from {wanted_ids}
where {record_id} = wanted.id and {status} in ('N', 'E', 'F')
/
