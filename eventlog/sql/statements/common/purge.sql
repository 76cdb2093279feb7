delete from {log} r
where {record_id} {among_ids} and {letter} in ({letters})
/
