create index if not exists {log_future} on {log} ({event_time}, {record_id}) where {status} = 'N'
/
