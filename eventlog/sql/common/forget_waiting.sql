delete from {waiting} where object_hash = :object_hash
/
