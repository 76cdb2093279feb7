{table_name} = :table
/
