delete {log} from {wanted_ids}
straight_join {log} on {record_id} = wanted.id and {status} in ({letters})
/
