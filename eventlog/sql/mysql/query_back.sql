-- current --
-- The rows of some keys as they are now.
select k.n{columns}
from json_table(:keys, '$[*]' columns (n integer path '$.n'{typed_paths})) as k
straight_join {source} as t on {matches}
order by k.n

-- key_collations --
-- The character sets and collations in which the columns of a key are compared.
select column_name, character_set_name, collation_name
from information_schema.columns
where table_schema = :schema and table_name = :table_name and collation_name is not null
