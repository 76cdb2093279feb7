select null, null, null from dual where :schema is null and :table_name is null and 1 = 0
/
