update {resync} set last_key = :last_key, rows_logged = rows_logged + :logged where table_name = :table_name
/
