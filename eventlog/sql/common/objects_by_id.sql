select distinct {table_name}, {table_key}
from {log} r
where {record_id} {among_ids}
/
