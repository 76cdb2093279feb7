create index if not exists {log_future} on {log} ({indexed_status}, {event_time}, {indexed_record_id})
/
