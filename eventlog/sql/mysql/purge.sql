-- by the key alone: another way reads, and locks, what writers have open
delete {log} from {wanted_ids}
straight_join {log} force index (primary) on {record_id} = wanted.id and {status} in ({letters})
/
