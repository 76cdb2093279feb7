select table_name as name
from information_schema.tables
where 1 = 0 and table_schema = :schema and table_name = :table_name
/
