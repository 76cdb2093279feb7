select distinct owner as schema_name
from all_objects
where owner = sys_context('USERENV', 'CURRENT_SCHEMA') and object_name = :name
/
