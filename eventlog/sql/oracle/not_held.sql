not exists (
    select null from {waiting} w
    where w.table_name = {log}.{table_name} and w.table_key = {log}.{table_key})
/
