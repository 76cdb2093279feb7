select owner as schema_name, table_name as table_name, 'table' as kind
from all_tables
where owner = coalesce(:schema, sys_context('USERENV', 'CURRENT_SCHEMA')) and nested = 'NO'
union all
select owner, view_name, 'view'
from all_views
where owner = coalesce(:schema, sys_context('USERENV', 'CURRENT_SCHEMA'))
order by 1, 2
/
