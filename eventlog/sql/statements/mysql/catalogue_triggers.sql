-- MySQL tells a doubled single quote of a trigger as one: bodies are compared without any
-- no trigger may change the table that it stands on, so none of others comes between a change and its row in the log
select trigger_name as trigger_name, event_object_schema as schema_name, event_object_table as table_name,
  replace(action_statement, '''', '') as body, '' as routine, 0 as fires_by_row, 1 as enabled, 0 as internal
from information_schema.triggers
where event_object_schema = :schema and event_object_table = :table_name
order by action_order
/
