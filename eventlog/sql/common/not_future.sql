({event_time} <= {log_now} or {event_time} is null)
/
