select {id}, {letter}, {event_type_told}, {table_name}, {table_key}, {column_name},
  f.event_id, f.reason, f.document, f.tries, f.failed_at
from {log} r left join {failed} f on f.record_id = {record_id}
where {conditions}
order by {record_id}
{first_rows}
/
