select column_name as column_name
from information_schema.key_column_usage
where table_schema = :schema and table_name = :table_name and constraint_name = 'PRIMARY'
order by ordinal_position
/
