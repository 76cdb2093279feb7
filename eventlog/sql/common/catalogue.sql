-- catalogue_family --
-- The tables that a table inherits from or is inherited by.
select table_name as name, '' as kin
from information_schema.tables
where 1 = 0 and table_schema = :schema and table_name = :table_name

-- catalogue_subscriptions --
-- The subscriptions that write to a table.
select table_name as name
from information_schema.tables
where 1 = 0 and table_schema = :schema and table_name = :table_name

-- catalogue_logs --
-- The tables of any schema that have the ten columns of a log.
select min(table_schema) as schema_name, min(table_name) as table_name
from information_schema.columns
where lower(column_name) in (
  'record_id', 'status', 'event_type', 'event_time', 'perpetrator', 'table_name', 'table', 'table_key', 'column_name',
  'old_value', 'new_value'
)
group by table_schema, table_name
having count(*) = 10
order by 1, 2
