replace into {tracked} (schema_name, table_name, of_schema, of_table, logged_as, choice)
values ({schema_name}, {own_name}, {of_schema}, {of_table}, {logged_as}, {choice})
/
