-- not_held --
-- Rows of objects that wait for no event.
-- a list reads fewer pages for each row than `exists` does
sha2(concat(convert({table_name} using utf8mb4), char(0), convert({table_key} using utf8mb4)), 256)
    in (select h.spelling_hash from {held} as h) is not true

-- first_rows --
-- At most so many rows.
limit :most

-- next_rows --
-- At most so many rows behind the first ones.
limit :most offset :skip

-- wanted_ids --
-- A list of ids as a table.
json_table(:ids, '$[*]' columns (id bigint path '$')) as wanted

-- same_values --
-- Rows whose two values are the same, whatever their collation.
cast({old_value} as binary) = cast({new_value} as binary)
