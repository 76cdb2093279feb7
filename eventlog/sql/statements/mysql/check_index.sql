select count(*)
from information_schema.statistics
where table_schema = {schema_text} and table_name = {log_text} and seq_in_index = 1
  and column_name = {status_text}
/
