{event_time}, {record_id}
/
