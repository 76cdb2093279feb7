not exists (
    select null from {waiting} w
    where w.table_name = {table_name} and w.table_key = {table_key})
/
