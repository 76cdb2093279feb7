select {id}
from {log} r
where {conditions}
order by {order}
{first_rows}
/
