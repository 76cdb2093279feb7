create index if not exists {log_pending} on {log} ({indexed_status}, {indexed_record_id})
/
