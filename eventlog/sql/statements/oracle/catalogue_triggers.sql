select trigger_name as trigger_name, table_owner as schema_name, table_name as table_name,
  '' as routine, case when trigger_type like '%EACH ROW%' then 1 else 0 end as fires_by_row,
  case status when 'ENABLED' then 1 else 0 end as enabled, 0 as internal, trigger_body as body
from all_triggers
where table_owner = :schema and table_name = :table_name
order by trigger_name
/
