select {record_id}
from {log}
where {conditions}
order by {order}
{first_rows}
/
