insert into {retry} (
  object_hash, first_id, event_id, object_table, object_key, record_ids, tries, next_at, reason)
values (:object_hash, :first_id, :event_id, :table_name, :table_key, :record_ids, :tries, :next_at, :reason)
/
