select
{row}
from {log} r
where {conditions} and {usable}
order by {record_id}
/
