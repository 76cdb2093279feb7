select {record_id}, {table_name}, {table_key}
from {log} r
where {record_id} {among_ids}
/
