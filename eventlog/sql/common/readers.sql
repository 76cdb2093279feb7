-- create_last --
-- Makes a table with the highest number that a reader of a queue gave.
create table {last} (
  handed bigint primary key
)
/
insert into {last} (handed) values (0)

-- drop_queue --
-- Removes a queue of changed objects, and what fills it.
@drop_counting
/
drop table if exists {last}
/
drop table if exists {delta}
