delete from {retry} where object_hash = :object_hash and event_id = :event_id
/
