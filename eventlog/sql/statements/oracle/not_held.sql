not exists (
    select null from {held} h
    where h.table_name = {table_name} and h.table_key = {table_key})
/
