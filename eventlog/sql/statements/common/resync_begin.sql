insert into {resync} (table_name, choice, rows_logged) values (:table_name, :choice, 0)
/
