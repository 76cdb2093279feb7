-- a list reads fewer pages for each row than `exists` does
sha2(concat(convert({table_name} using utf8mb4), char(0), convert({table_key} using utf8mb4)), 256)
    in (select h.spelling_hash from {held} as h) is not true
/
