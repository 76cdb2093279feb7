-- current --
-- The rows of some keys as they are now.
select k.n{columns}
from pg_catalog.json_to_recordset(cast(:keys as pg_catalog.json)) as k(n integer{typed_keys})
join {source} as t on {matches}
order by k.n

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
