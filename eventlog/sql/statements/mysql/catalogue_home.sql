select database() as schema_name
/
