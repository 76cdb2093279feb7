select {event_type_told}, count(*) from {log} r where {is_new} group by {event_type_told}
/
