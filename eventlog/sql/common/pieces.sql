-- row --
-- The ten columns of a row, under our names.
  {id} as record_id,
  {letter} as status,
  {event_type_shown} as event_type,
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
  {event_type_shown} as event_type,
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

-- newly_written --
-- Rows that are new, also those that cannot be finished.
{is_new}

-- excluded --
-- Rows that are new and cannot be finished.
{is_new} and case when {usable} then 1 else 0 end = 0

-- has_failed --
-- Rows that failed and can be finished.
{letter} in ('E', 'F') and {usable}

-- was_published --
-- Rows that are done and did not fail.
{letter} in ('S', 'W')

-- still_new --
-- Rows without a letter of their own, whether they may go or not.
{letter} = 'N'

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

-- of_key --
-- Rows of a table_key.
{table_key} = :of_key

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

-- letter_beside --
-- The letter that a row has beside the log, null where it has none.
(select d.letter from {done} d where d.block = {block_of_row} and {record_id} between d.first_id and d.last_id)

-- true_letter --
-- The letter of a row: its status, or the one beside the log.
case when {is_new} then coalesce({letter_beside}, 'N') else {raw_letter} end

-- not_done --
-- Rows that are not done by what stands beside the log.
{letter_beside} is null

-- every_row --
-- The rows of the log.
{log} r {use_index}

-- gaps --
-- The record_ids between the ranges of what is done, behind one and up to another.
(
  select greatest(coalesce(before_it, 0), :above) + 1 as low, least(first_id - 1, :below) as high
  from (
    select d.first_id, lag(d.last_id) over (order by d.block, d.first_id) as before_it
    from {done} d
  ) neighbours
  where first_id - 1 > greatest(coalesce(before_it, 0), :above) and coalesce(before_it, 0) < :below
) gap

-- gap_rows --
-- The new rows in these gaps.
-- ordered within, so that each gap is read by an index: nothing tells the planner how narrow they are
{gaps}
cross join lateral (
  select l.* from {log} l
  where l.{raw_record_id} between gap.low and gap.high and l.{raw_status} = 'N'
  order by l.{raw_record_id}
) r

-- every_new_row --
-- The new rows in these gaps, and behind what is done.
(
  select r.* from {gap_rows}
  union all
  select r.* from {log} r where {record_id} > :top and {record_id} <= :reach and {is_new}
) r
