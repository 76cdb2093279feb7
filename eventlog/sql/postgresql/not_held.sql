(({table_name}, {table_key}) in (select w.table_name, w.table_key from {waiting} as w)) is not true
/
