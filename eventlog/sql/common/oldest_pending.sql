select count(*), min({event_time_utc})
from {log}
where {pending}
/
