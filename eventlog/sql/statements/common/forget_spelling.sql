delete from {held} where object_hash = :object_hash and spelling_hash = :spelling_hash
/
