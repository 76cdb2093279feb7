select table_name, table_key from {held} where object_hash = :object_hash
/
