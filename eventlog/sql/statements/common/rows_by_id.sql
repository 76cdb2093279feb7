select
{row}
from {log} r
where {record_id} {among_ids}
order by {record_id}
/
