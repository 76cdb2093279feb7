select distinct {table_name}, {table_key}
from {log}
where {record_id} {among_ids}
/
