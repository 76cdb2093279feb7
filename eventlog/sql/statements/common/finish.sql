update {log} r set {raw_status} = :letter
where {record_id} {among_ids} and {is_new}
/
