{event_time} is null
/
