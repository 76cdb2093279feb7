  {id} as record_id,
  {letter} as status,
  {event_type_told} as event_type,
  {event_time_text} as event_time,
  {perpetrator} as perpetrator,
  {table_name} as table_name,
  {table_key} as table_key,
  {column_name} as column_name,
  {old_value} as old_value,
  {new_value} as new_value
/
