insert into {waiting} (object_hash, event_id, table_name, table_key, record_ids, tries, next_at, reason)
values (:object_hash, :event_id, :table_name, :table_key, :record_ids, :tries, :next_at, :reason)
/
