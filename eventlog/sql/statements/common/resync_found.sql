select choice, last_key, rows_logged from {resync} where table_name = :table_name
/
