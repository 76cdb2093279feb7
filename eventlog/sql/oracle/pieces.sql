-- size --
-- The bytes of a row's key and values; a key is held twice, in the row and as its object's name.
2 * coalesce(lengthb({table_key}), 0) + coalesce(dbms_lob.getlength({old_value}), 0) + coalesce(dbms_lob.getlength({new_value}), 0)

-- pending --
-- Rows that are new and can be finished.
decode({status}, 'N', {record_id}) is not null and {usable}

-- not_future --
-- Rows whose time has come.
decode({status}, 'N', {event_time}) <= {log_now}

-- not_held --
-- Rows of objects that wait for no event.
not exists (
    select null from {held} h
    where h.table_name = {table_name} and h.table_key = {table_key})

-- by_record_id --
-- The order of record_ids, which the index of pending rows serves.
decode({status}, 'N', {record_id})

-- by_event_time --
-- The order of event_time, which the index of future events serves.
decode({status}, 'N', {event_time}), decode({status}, 'N', {record_id})

-- first_rows --
-- At most so many rows.
fetch first :most rows only

-- next_rows --
-- At most so many rows behind the first ones.
offset :skip rows fetch next :most rows only

-- wanted_ids --
-- A list of ids as a table.
json_table(:ids, '$[*]' columns (id number path '$')) wanted

-- same_values --
-- Rows whose two values are the same; CLOBs have no other comparison.
dbms_lob.compare({old_value}, {new_value}) = 0
