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
