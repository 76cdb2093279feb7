create index if not exists {log_future} on {log} ({status}, {event_time}, {record_id})
/
