create index if not exists {log_future} on {log} ({event_time}, {indexed_record_id}) where {status} = 'N'
/
