  {record_id} as record_id,
  {status} as status,
  {event_type} as event_type,
  to_char({event_time_utc}, 'YYYY-MM-DD HH24:MI:SS.FF9') as event_time,
  {perpetrator} as perpetrator,
  {table_name} as table_name,
  {table_key} as table_key,
  {column_name} as column_name,
  {old_value} as old_value,
  {new_value} as new_value
/
