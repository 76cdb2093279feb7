select k.constraint_name as constraint_name, u.column_name as column_name, t.owner as target_schema,
  t.table_name as target_table, t.column_name as target_column, k.delete_rule as on_delete,
  'no action' as on_update
from all_constraints k
join all_cons_columns u on u.owner = k.owner and u.constraint_name = k.constraint_name
join all_cons_columns t
  on t.owner = k.r_owner and t.constraint_name = k.r_constraint_name and t.position = u.position
where k.owner = :schema and k.table_name = :table_name and k.constraint_type = 'R'
order by k.constraint_name, u.position
/
