select {record_id}
from {log} {use_index}
where {conditions}
order by {order}
{next_rows}
/
