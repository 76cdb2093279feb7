set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = {schema_text} and table_name = {log_text} and index_name = {log_pending_text})
/
set @statement = if(@missing, 'create index {log_pending} on {log} ({indexed_status}, {indexed_record_id})', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
