select schema_name as schema_name from information_schema.schemata
/
