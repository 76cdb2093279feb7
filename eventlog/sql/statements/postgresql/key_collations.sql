select null, null, null where cast(:schema as text) is null and cast(:table_name as text) is null and false
/
