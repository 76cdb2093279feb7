-- snapshot --
-- Begins a transaction that sees one moment and writes nothing.
set transaction isolation level repeatable read, read only

-- log_position --
-- The last record_id that the log's sequence gave, and whether it gave any.
set session information_schema_stats_expiry = 0
/
select t.auto_increment - 1, 1
from information_schema.tables t
where t.table_schema = {schema_text} and t.table_name = {log_text}
/

-- advance_position --
-- Sets the log's sequence past a record_id.
alter table {log} auto_increment = {next}
