select s.username, to_char(s.audsid), 'program ' || s.program
from v$locked_object o
join v$session s on s.sid = o.session_id
join all_objects t on t.object_id = o.object_id
where t.owner = {schema_text} and t.object_name = {lock_text}
/
