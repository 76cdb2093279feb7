select {id}
from {log} r
where {record_id} {among_ids} and {event_type} in (1, 2, 3, 7, 8) and exists (
  select 1
  from (
    select {record_id} as row_id, {letter} as row_letter, {event_type} as row_type, {table_name} as row_table,
      {table_key} as row_key, {column_name} as row_column
    from {log} r
  ) later
  where later.row_id > {record_id} and later.row_letter in ('S', 'W')
    and later.row_table = {table_name} and later.row_key = {table_key}
    and (later.row_column = {column_name} or later.row_type in (4, 5, 6)))
order by {record_id}
/
