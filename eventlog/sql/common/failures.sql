select {log}.{record_id}, {status}, {event_type}, {table_name}, {table_key}, {column_name},
  f.event_id, f.reason, f.document, f.tries, f.failed_at
from {log} left join {failed} f on f.record_id = {log}.{record_id}
where {conditions}
order by {log}.{record_id}
{first_rows}
/
