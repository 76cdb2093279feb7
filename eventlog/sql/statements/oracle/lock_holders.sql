select s.username, to_char(s.audsid), 'program ' || s.program
from v$session s
where s.sid in (
  select l.sid from v$lock l where l.type = 'UL' and l.id1 = {lock_number} and l.lmode = 6
  union all
  select o.session_id
  from v$locked_object o
  join all_objects t on t.object_id = o.object_id
  where t.owner = {schema_text} and t.object_name = {lock_text}
)
/
