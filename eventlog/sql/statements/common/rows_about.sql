select
{row}
from {log} r
where {table_key} like :words escape '!' and {usable}
order by {record_id}
/
