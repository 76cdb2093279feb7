select table_name, 0 from information_schema.tables where 1 = 0
/
