select c.column_name as column_name, c.column_type as type_name,
  case when coalesce(c.collation_name, '{collation}') = '{collation}' then 1 else 0 end as exact,
  exists (
    select 1 from information_schema.statistics s
    where s.table_schema = {schema_text} and s.table_name = {log_text} and s.index_name = 'PRIMARY'
      and s.seq_in_index = 1 and s.column_name = c.column_name) as keyed
from information_schema.columns c
where c.table_schema = {schema_text} and c.table_name = {log_text}
order by c.ordinal_position
/
