-- not_held --
-- Rows of objects that wait for no event.
(({table_name}, {table_key}) in (select h.table_name, h.table_key from {held} as h)) is not true

-- of_ids --
-- Rows by a list of record_ids.
-- not a join: the planner would rather read all that is pending, where statistics are old
{record_id} = any (cast(translate(:ids, '[]', '{}') as bigint[]))

-- first_rows --
-- At most so many rows.
limit :most

-- next_rows --
-- At most so many rows behind the first ones.
limit :most offset :skip

-- wanted_ids --
-- A list of ids as a table.
unnest(cast(translate(:ids, '[]', '{}') as bigint[])) as wanted(id)

-- packed_number --
-- A column of numbers as one value, eight bytes of each, 0 for null.
pg_catalog.string_agg(pg_catalog.int8send(coalesce({column}, 0)), '')

-- packed_text --
-- A column of texts as two values: their lengths, four bytes of each, -1 for null, and all of them one behind the other.
pg_catalog.string_agg(pg_catalog.int4send(coalesce(pg_catalog.octet_length({column}), -1)), ''),
  pg_catalog.string_agg({column}, '')

-- oldest_writer --
-- The number of the oldest transaction that may write in this snapshot.
cast(cast(pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot()) as text) as bigint)

-- join_whole --
-- From here on no row of one side of a join is looked for alone in the other.
set local enable_nestloop to off

-- join_by_row --
-- From here on each row of one side of a join is looked for in the other.
select pg_catalog.set_config('enable_hashjoin', 'off', true), pg_catalog.set_config('enable_mergejoin', 'off', true)

-- join_freely --
-- Ends both.
select pg_catalog.set_config('enable_nestloop', null, true), pg_catalog.set_config('enable_hashjoin', null, true),
  pg_catalog.set_config('enable_mergejoin', null, true)
