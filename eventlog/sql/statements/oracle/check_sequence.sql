select sequence_name, cache_size
from all_sequences
where sequence_owner = {schema_text} and sequence_name = {log_sequence_text} and order_flag = 'N'
/
