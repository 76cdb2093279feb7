-- row --
-- The ten columns of a row, under our names.
  {id} as record_id,
  {letter} as status,
  {event_type} as event_type,
  {event_time_text} as event_time,
  {perpetrator} as perpetrator,
  {table_name} as table_name,
  {table_key} as table_key,
  {column_name} as column_name,
  {old_value} as old_value,
  {new_value} as new_value

-- row_by_column --
-- The columns of a row that say what happened; of its time, whether it needs a closer look.
  {id} as record_id,
  {event_type} as event_type,
  {time_is_plain} as time_is_plain,
  {table_name} as table_name,
  {table_key} as table_key,
  {column_name} as column_name,
  {old_value} as old_value,
  {new_value} as new_value

-- size --
-- The bytes of a row's key and values; a key is held twice, in the row and as its object's name.
2 * coalesce(octet_length({table_key}), 0) + coalesce(octet_length({old_value}), 0) + coalesce(octet_length({new_value}), 0)

-- pending --
-- Rows that are new and can be finished.
{is_new} and {usable}

-- has_failed --
-- Rows that failed and can be finished.
{letter} in ('E', 'F') and {usable}

-- loopback --
-- Rows of the driver's own user.
{perpetrator} = :driver_user

-- not_loopback --
-- Rows of everybody but the driver's own user.
({perpetrator} is null or {perpetrator} <> :driver_user)

-- not_future --
-- Rows whose time has come.
{event_time} <= {log_now}

-- timeless --
-- Rows without a time.
{event_time} is null

-- after_row --
-- Rows behind a record_id.
{record_id} > :after

-- up_to_row --
-- Rows up to a record_id.
{record_id} <= :upto

-- of_ids --
-- Rows by a list of record_ids.
{record_id} {among_ids}

-- of_table --
-- Rows of a table_name.
{table_name} = :of_table

-- of_reason --
-- Failed rows whose reason holds some words.
f.reason like :reason escape '!'

-- by_record_id --
-- The order of record_ids, which the index of pending rows serves.
{record_id}

-- by_event_time --
-- The order of event_time, which the index of future events serves.
{event_time}, {record_id}

-- among_ids --
-- Whether what stands before it is in a list of ids.
in (select id from {wanted_ids})

-- oldest_writer --
-- The number of the oldest transaction that may write in this snapshot; there is none here.
null

-- same_values --
-- Rows whose two values are the same.
{old_value} = {new_value}

-- join_whole --
-- From here on no row of one side of a join is looked for alone in the other.

-- join_by_row --
-- From here on each row of one side of a join is looked for in the other.

-- join_freely --
-- Ends both.
