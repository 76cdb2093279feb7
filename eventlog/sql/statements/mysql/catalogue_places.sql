select table_schema as schema_name
from information_schema.tables
where table_schema = database() and table_name = :name
/
