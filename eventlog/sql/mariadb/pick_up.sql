-- log_position --
-- The last record_id that the log's sequence gave, and whether it gave any.
select t.auto_increment - 1, 1
from information_schema.tables t
where t.table_schema = {schema_text} and t.table_name = {log_text}
