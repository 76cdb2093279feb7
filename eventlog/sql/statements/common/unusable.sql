select {record_id_text}, {event_type_told}, {table_name}, {table_key}, {column_name}
from {log} r
where {conditions}
{first_rows}
/
