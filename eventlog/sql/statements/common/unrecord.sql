delete from {tracked}
where of_schema = {of_schema} and of_table = {of_table} and (schema_name <> of_schema or table_name <> of_table)
/
update {tracked} set choice = null
where schema_name = {of_schema} and table_name = {of_table} and of_schema = {of_schema} and of_table = {of_table}
/
