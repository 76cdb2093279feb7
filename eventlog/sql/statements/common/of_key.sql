{table_key} = :of_key
/
