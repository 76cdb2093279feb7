select {perpetrator} as perpetrator, {table_name} as table_name, {table_key} as table_key
from {log} r
where {pending}
order by {record_id}
{first_rows}
/
