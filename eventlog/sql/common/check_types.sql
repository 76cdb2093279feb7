select {event_type_told}, count(*) from {log} r group by {event_type_told}
/
