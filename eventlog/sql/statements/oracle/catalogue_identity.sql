select lower(object_type) as kind, to_char(object_id) as table_id, owner as owner
from all_objects
where owner = :schema and object_name = :table_name and object_type in ('TABLE', 'VIEW')
/
