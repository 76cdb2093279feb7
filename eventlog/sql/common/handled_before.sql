select {record_id}
from {log}
where {record_id} > :after and {status} in ({letters}) and {event_time_utc} < :before
order by {record_id}
{first_rows}
/
