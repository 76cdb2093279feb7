select count(*) from {log} where {event_time} is null
/
