-- concat: an index of status would be read, and locked, from end to end for each id
update {wanted_ids}
straight_join {log} on {record_id} = wanted.id and concat({status}) = 'N'
set {status} = :letter
/
