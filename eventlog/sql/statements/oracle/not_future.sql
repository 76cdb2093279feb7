decode({status}, 'N', {event_time}) <= {log_now}
/
