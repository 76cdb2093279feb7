-- current --
-- The rows of some keys as they are now. Each column of the keys is an array, which is read in half the time that
-- records need; of an array of SQL's own the planner knows the length, and would rather read the whole table.
select k.n{columns}
from (
  select g.n - 1 as n{cast_keys} from rows from ({key_arrays}) with ordinality as g({key_names}, n)
) as k
join {source} as t on {matches}
order by k.n

-- key_array --
-- The values of a column of some keys.
pg_catalog.json_array_elements_text(pg_catalog.json_extract_path(cast(:keys as pg_catalog.json), '{column}'))

-- search --
-- The keys of the first objects that have all these values.
select {columns}
from json_to_recordset(cast(:wanted as json)) as k(n integer{typed_keys})
join {source} as t on {matches}
group by {columns}
having {every}
{first_rows}

-- key_collations --
-- The character sets and collations in which the columns of a key are compared.
select null, null, null where cast(:schema as text) is null and cast(:table_name as text) is null and false
