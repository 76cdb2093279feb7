create index if not exists {log_pending} on {log} ({indexed_record_id}) where {status} = 'N'
/
