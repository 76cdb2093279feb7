select {id}, {event_type_told}, {table_name}, {table_key}
from {log} r {use_index}
where {conditions}
order by {order}
{next_rows}
/
