-- check_unguarded --
-- The published tables whose rows DDL could hide from a snapshot unnoticed.
select null as table_name, null as reason
from {log}
where 1 = 0 and :places is null

-- check_letters --
-- How many rows have each letter.
select {letter}, count(*) from {log} r group by {letter}

-- check_types --
-- How many new rows have each event type.
select {event_type}, count(*) from {log} r where {is_new} group by {event_type}

-- check_ids --
-- How many new rows cannot be finished.
select count(*) from {log} r where {is_new} and case when {usable} then 1 else 0 end = 0

-- check_null_times --
-- How many rows have no time.
select count(*) from {log} r where {event_time} is null

-- check_pending --
-- What the first pending rows say of their objects and users.
select
  {perpetrator} as perpetrator,
  {table_name} as table_name,
  {table_key} as table_key,
  {event_type} as event_type,
  {column_name} as column_name
from {log} r
where {pending}
order by {record_id}
{first_rows}
