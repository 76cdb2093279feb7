-- check_index --
-- How many indexes serve the pick-up.
select count(*)
from all_indexes
where table_owner = {schema_text} and table_name = {log_text} and index_type like 'FUNCTION-BASED%'
  and status = 'VALID'

-- check_sequence --
-- The sequences of the log that do not give record_ids in the order of changes.
select
  sequence_name,
  cache_size,
  'alter sequence "' || sequence_owner || '"."' || sequence_name || '" order;' as mending
from all_sequences
where sequence_owner = {schema_text} and sequence_name = {log_sequence_text} and order_flag = 'N'
