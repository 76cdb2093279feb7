-- ours: made by the user that we are, who owns the log
select event_object_schema as schema_name, event_object_table as table_name,
  max(case when definer = current_user() then 1 else 0 end) as ours
from information_schema.triggers
where instr(action_statement, :mark) > 0 and instr(action_statement, :log) > 0
  and :log_schema is not null and :record is not null
group by 1, 2
/
