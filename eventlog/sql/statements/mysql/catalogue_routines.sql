select routine_name as routine_name, replace(routine_definition, '''', '') as body
from information_schema.routines
where routine_schema = :schema
/
