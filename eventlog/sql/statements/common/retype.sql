update {log} r set {raw_event_type} = :type
where {record_id} {among_ids} and {letter} in ('E', 'F')
/
