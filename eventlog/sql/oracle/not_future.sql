case {status} when 'N' then {event_time} end <= {log_now}
/
