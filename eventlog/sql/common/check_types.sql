select {event_type}, count(*) from {log} group by {event_type}
/
