create index if not exists {log_pending} on {log} ({record_id}) where {status} = 'N'
/
