-- work --
-- Begins a transaction that sees what others commit meanwhile.
begin isolation level read committed

-- add_done_all --
-- Adds ranges to what is done.
insert into {done} (block, first_id, last_id, letter)
select g.block, g.first_id, g.last_id, g.letter
from pg_catalog.json_to_recordset(cast(:rows as json)) as g (
  block bigint, first_id bigint, last_id bigint, letter char(1))

-- change_done_all --
-- Gives ranges of what is done other ends or letters.
update {done} d set last_id = g.last_id, letter = g.letter
from pg_catalog.json_to_recordset(cast(:rows as json)) as g (
  block bigint, first_id bigint, last_id bigint, letter char(1))
where d.block = g.block and d.first_id = g.first_id

-- drop_done_all --
-- Takes ranges away from what is done.
delete from {done} d
using pg_catalog.json_to_recordset(cast(:rows as json)) as g (block bigint, first_id bigint)
where d.block = g.block and d.first_id = g.first_id
