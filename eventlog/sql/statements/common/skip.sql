update {log} r set {raw_status} = 'W'
where {record_id} {among_ids} and {letter} in ('N', 'E', 'F')
/
