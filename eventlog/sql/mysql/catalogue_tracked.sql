select distinct event_object_schema as schema_name, event_object_table as table_name
from information_schema.triggers
where action_statement like :mark
/
