delete from {log}
where {record_id} {among_ids} and {status} in ({letters})
/
