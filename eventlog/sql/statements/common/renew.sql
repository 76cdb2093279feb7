update {log} r set {raw_status} = 'N'
where {record_id} {among_ids} and {letter} in ('E', 'F')
/
