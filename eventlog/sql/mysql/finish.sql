-- by the key alone: another way reads, and locks, what writers have open
update {wanted_ids}
straight_join {log} force index (primary) on {record_id} = wanted.id and {status} = 'N'
set {status} = :letter
/
