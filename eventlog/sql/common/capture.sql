-- tracked --
-- What is tracked, as is on record.
select schema_name, table_name, of_schema, of_table, logged_as, table_id, table_owner, choice
from {tracked}
order by tracked_at, schema_name, table_name

-- extremes --
-- The least and the greatest value of a column that an index begins with.
select
  {texts}
from {table} t

-- trial --
-- Evaluates the expressions of triggers on a row of their table, if there is one.
select
  {expressions}
from {table} n
cross join {table} o
limit 1

-- unrecord --
-- Puts on record that a table is tracked no longer.
delete from {tracked}
where of_schema = {of_schema} and of_table = {of_table} and (schema_name <> of_schema or table_name <> of_table)
/
update {tracked} set choice = null
where schema_name = {of_schema} and table_name = {of_table} and of_schema = {of_schema} and of_table = {of_table}
/

-- resync_found --
-- How far a resync of a table came.
select choice, last_key, rows_logged from {resync} where table_name = :table_name

-- resync_begin --
-- Keeps that a resync of a table began.
insert into {resync} (table_name, choice, rows_logged) values (:table_name, :choice, 0)

-- resync_advance --
-- Keeps how far a resync of a table came by now.
update {resync} set last_key = :last_key, rows_logged = rows_logged + :logged where table_name = :table_name

-- resync_forget --
-- Forgets the resync of a table.
delete from {resync} where table_name = :table_name

-- resync_keys --
-- The keys of a chunk, as texts and as they are.
select {key_text}, {keys}
from {source} t
where {within}
order by {keys}
{next_rows}
