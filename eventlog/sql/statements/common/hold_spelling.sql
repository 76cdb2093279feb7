insert into {held} (object_hash, spelling_hash, table_name, table_key)
values (:object_hash, :spelling_hash, :table_name, :table_key)
/
