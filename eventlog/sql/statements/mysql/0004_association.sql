-- MySQL has no `add column if not exists`
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'association')
/
set @statement = if(@missing, 'alter table {state} add column association varchar(9)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
update {state} set association = '{association}' where association is null
/
