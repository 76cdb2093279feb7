select count(*)
from all_indexes
where table_owner = {schema_text} and table_name = {log_text} and index_type like 'FUNCTION-BASED%'
  and status = 'VALID'
/
