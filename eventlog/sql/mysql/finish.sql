update {wanted_ids}
straight_join {log} on {record_id} = wanted.id and {status} = 'N'
set {status} = :letter
/
