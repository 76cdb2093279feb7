select current_schema() as schema_name
/
