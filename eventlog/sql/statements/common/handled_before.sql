select {id}
from {log} r
where {record_id} > :after and {letter} in ({letters}) and {event_time_utc} < :before and {usable}
order by {record_id}
{first_rows}
/
