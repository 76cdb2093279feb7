update {log} r set {raw_status} = :letter
from {wanted_ids}
where {record_id} = wanted.id and {is_new}
/
