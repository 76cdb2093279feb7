update {retry}
set object_hash = :new_hash, first_id = :new_id, object_table = :table_name, object_key = :table_key
where object_hash = :object_hash and first_id = :first_id
/
