{table_key} = :key
/
