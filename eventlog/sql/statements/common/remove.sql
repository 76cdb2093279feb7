delete from {log} r
where {record_id} {among_ids} and {is_new}
/
