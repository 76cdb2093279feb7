create index if not exists {log_pending} on {log} ({status}, {record_id})
/
