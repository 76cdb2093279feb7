select u.column_name as column_name
from all_constraints k
join all_cons_columns u on u.owner = k.owner and u.constraint_name = k.constraint_name
where k.owner = :schema and k.table_name = :table_name and k.constraint_type = 'P'
order by u.position
/
