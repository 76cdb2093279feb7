select
{row}
from {log} r
where {table_name} = :table_name and {table_key} = :table_key and {usable}
order by {record_id}
/
