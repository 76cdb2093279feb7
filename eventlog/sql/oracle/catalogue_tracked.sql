select distinct t.table_owner as schema_name, t.table_name as table_name
from all_source s
join all_triggers t on t.owner = s.owner and t.trigger_name = s.name
where s.type = 'TRIGGER' and s.text like '%eventlog track {%' and :mark is not null
/
