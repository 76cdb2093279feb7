update {log} set {status} = 'W'
where {record_id} {among_ids} and {status} in ('N', 'E', 'F')
/
