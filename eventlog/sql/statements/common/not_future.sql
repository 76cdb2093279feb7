{event_time} <= {log_now}
/
