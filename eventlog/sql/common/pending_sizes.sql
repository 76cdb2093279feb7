select {record_id}, {size}
from {log} {use_index}
where {conditions}
order by {order}
{next_rows}
/
