-- ours: the trigger belongs to whom the log belongs to
select t.table_owner as schema_name, t.table_name as table_name,
  max(case when t.owner = :log_schema then 1 else 0 end) as ours
from all_source s
join all_triggers t on t.owner = s.owner and t.trigger_name = s.name
where s.type = 'TRIGGER' and instr(s.text, :mark) > 0 and :record is not null
  and exists (
    select null from all_source l
    where l.owner = s.owner and l.name = s.name and l.type = s.type and instr(l.text, :log) > 0
  )
group by t.table_owner, t.table_name
/
