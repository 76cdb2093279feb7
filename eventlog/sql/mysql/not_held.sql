not exists (
    select 1 from {waiting} as w
    where w.object_hash = sha2(concat(convert({log}.{table_name} using utf8mb4), char(0), convert({log}.{table_key} using utf8mb4)), 256))
/
