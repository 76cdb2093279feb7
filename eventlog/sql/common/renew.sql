update {log} set {status} = 'N'
where {record_id} {among_ids} and {status} in ('E', 'F')
/
