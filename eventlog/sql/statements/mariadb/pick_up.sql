-- log_position --
-- The last record_id that the log's sequence gave.
select auto_increment - 1 from information_schema.tables where table_schema = {schema_text} and table_name = {log_text}
