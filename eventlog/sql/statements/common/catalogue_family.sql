select table_name as name, '' as kin
from information_schema.tables
where 1 = 0 and table_schema = :schema and table_name = :table_name
/
