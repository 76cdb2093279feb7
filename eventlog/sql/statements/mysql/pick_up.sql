-- snapshot --
-- Begins a transaction that sees one moment and writes nothing.
set transaction isolation level repeatable read, read only

-- log_position --
-- The last record_id that the log's sequence gave.
set session information_schema_stats_expiry = 0
/
select auto_increment - 1 from information_schema.tables where table_schema = {schema_text} and table_name = {log_text}
/

-- advance_position --
-- Sets the log's sequence past a record_id.
alter table {log} auto_increment = {next}
