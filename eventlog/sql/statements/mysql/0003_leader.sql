set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'leader_session')
/
set @statement = if(@missing, 'alter table {state} add column leader_session text', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'highest_id')
/
set @statement = if(@missing, 'alter table {state} add column highest_id bigint', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
