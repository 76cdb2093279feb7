-- check_index --
-- How many indexes serve the pick-up.
select count(*)
from information_schema.statistics
where table_schema = {schema_text} and table_name = {log_text} and seq_in_index = 1
  and column_name = {status_text}

-- check_sequence --
-- The sequences of the log that do not give record_ids in the order of changes.
select table_name, 0 from information_schema.tables where 1 = 0
