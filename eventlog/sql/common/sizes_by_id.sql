select {record_id}, {size}
from {log}
where {record_id} {among_ids}
order by {record_id}
/
