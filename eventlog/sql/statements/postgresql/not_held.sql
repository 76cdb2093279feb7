(({table_name}, {table_key}) in (select h.table_name, h.table_key from {held} as h)) is not true
/
