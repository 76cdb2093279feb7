-- by the key alone: another way reads, and locks, what writers have open
update {wanted_ids}
straight_join {log} force index (primary) on {record_id} = wanted.id and {status} in ('N', 'E', 'F')
set {status} = 'W'
/
