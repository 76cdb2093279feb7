select {record_id}, {table_name}, {table_key}
from {log} {use_index}
where {conditions}
order by {order}
{next_rows}
/
