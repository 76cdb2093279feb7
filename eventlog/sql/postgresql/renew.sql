update {log} set {status} = 'N'
from {wanted_ids}
where {record_id} = wanted.id and {status} in ('E', 'F')
/
