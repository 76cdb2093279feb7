update {log} set {status} = :letter
from {wanted_ids}
where {record_id} = wanted.id and {status} = 'N'
/
