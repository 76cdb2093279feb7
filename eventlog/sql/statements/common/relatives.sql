select {id}, {event_type}, {letter}, {table_name}, {table_key}, {column_name}, f.event_id
from {log} r left join {failed} f on f.record_id = {record_id}
where {usable} and ({table_name}, {table_key}) in (
  select {table_name}, {table_key}
  from {log} r
  where {record_id} {among_ids})
order by {record_id}
/
