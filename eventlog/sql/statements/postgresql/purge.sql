delete from {log} r
using {wanted_ids}
where {record_id} = wanted.id and {letter} in ({letters})
/
