-- current_measured --
-- The rows of some keys as they are now, with the bytes of each; none behind those that come to so many.
select f.n, f.bytes{names}
from (
  select b.*, pg_catalog.sum(b.bytes) over (order by b.n rows unbounded preceding) - b.bytes as before
  from (
    select q.*, cast({bytes} as pg_catalog.int8) as bytes
    from (
{rows}
    ) as q (n{names})
  ) as b
) as f
where f.before < :most
order by f.n

-- rows_of_keys --
-- The rows of some keys of one table, with the number of the key. Each column of the keys is an array, which is read
-- in half the time that records need; of an array of SQL's own the planner knows the length, and would rather read the
-- whole table. Without the offset it would make each text twice.
(select k.n{columns}
from (
  select g.n - 1 + cast(:first{number} as pg_catalog.int8) as n{cast_keys}
  from rows from ({key_arrays}) with ordinality as g({key_names}, n){few_keys}
) as k
join {source} as t on {matches}
offset 0)

-- few_keys --
-- Ends the list of few keys. The planner expects three keys by this and a hundred without it, for which it reads a
-- table of up to 35 000 rows as a whole.
where g.n >= 0 limit :many

-- key_array --
-- The values of a column of some keys.
pg_catalog.json_array_elements_text(pg_catalog.json_extract_path(cast(:keys{number} as pg_catalog.json), '{column}'))

-- text_bytes --
-- How many bytes a text has; of one that is stored apart this is known without reading it.
coalesce(cast(pg_catalog.octet_length({column}) as pg_catalog.int8), 0)

-- key_collations --
-- The character sets and collations in which the columns of a key are compared.
select null, null, null where cast(:schema as text) is null and cast(:table_name as text) is null and false
