select count(*) from {log} r where {event_time} is null
/
