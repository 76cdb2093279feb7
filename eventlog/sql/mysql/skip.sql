update {wanted_ids}
straight_join {log} on {record_id} = wanted.id and {status} in ('N', 'E', 'F')
set {status} = 'W'
/
