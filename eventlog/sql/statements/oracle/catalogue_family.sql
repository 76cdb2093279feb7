select table_name as name, '' as kin from all_tables where 1 = 0 and owner = :schema and table_name = :table_name
/
