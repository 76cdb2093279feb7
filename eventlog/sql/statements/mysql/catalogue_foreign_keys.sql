select u.constraint_name as constraint_name, u.column_name as column_name,
  u.referenced_table_schema as target_schema, u.referenced_table_name as target_table,
  u.referenced_column_name as target_column, r.delete_rule as on_delete, r.update_rule as on_update
from information_schema.key_column_usage u
join information_schema.referential_constraints r
  on r.constraint_schema = u.constraint_schema and r.constraint_name = u.constraint_name
  and r.table_name = u.table_name
where u.table_schema = :schema and u.table_name = :table_name and u.referenced_table_name is not null
order by u.constraint_name, u.ordinal_position
/
