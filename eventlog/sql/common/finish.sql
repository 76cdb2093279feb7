update {log} set {status} = :letter
where {record_id} {among_ids} and {status} = 'N'
/
