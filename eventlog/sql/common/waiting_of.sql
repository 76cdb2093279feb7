select record_ids from {waiting} where object_hash = :object_hash
/
