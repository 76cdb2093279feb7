update {log} r set {raw_status} = 'N'
from {wanted_ids}
where {record_id} = wanted.id and {letter} in ('E', 'F')
/
