select {id}, {size}
from {log} r {use_index}
where {conditions}
order by {order}
{next_rows}
/
