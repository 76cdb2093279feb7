delete from {log}
using {wanted_ids}
where {record_id} = wanted.id and {status} in ({letters})
/
