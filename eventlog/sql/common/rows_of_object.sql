select
{row}
from {log}
where {table_name} = :table_name and {table_key} = :table_key
order by {record_id}
/
