-- snapshot --
-- Begins a transaction that sees one moment and writes nothing.
set transaction isolation level repeatable read, read only

-- log_position --
-- The last record_id that the log's sequence gave, its end, and whether it gave any.
set session information_schema_stats_expiry = 0
/
select
  t.auto_increment - 1,
  case
    when c.data_type = 'int' then case when c.column_type like '%unsigned%' then 4294967295 else 2147483647 end
    else 9223372036854775807
  end,
  1
from information_schema.tables t
join information_schema.columns c
  on c.table_schema = t.table_schema and c.table_name = t.table_name and c.extra like '%auto_increment%'
where t.table_schema = {schema_text} and t.table_name = {log_text}
/

-- advance_position --
-- Sets the log's sequence past a record_id.
alter table {log} auto_increment = {next}
