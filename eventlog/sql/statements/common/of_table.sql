{table_name} = :of_table
/
