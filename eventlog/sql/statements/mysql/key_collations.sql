select column_name, character_set_name, collation_name
from information_schema.columns
where table_schema = :schema and table_name = :table_name and collation_name is not null
/
