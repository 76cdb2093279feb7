select sys_context('USERENV', 'CURRENT_SCHEMA') as schema_name from dual
/
