select {id}, {table_name}, {table_key}
from {log} r {use_index}
where {conditions}
order by {order}
{next_rows}
/
