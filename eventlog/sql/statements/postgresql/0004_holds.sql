create table if not exists {retry} (
  object_hash char(64) not null, -- SHA-256 of object_table, a zero byte, object_key
  first_id bigint not null, -- the first row of the event
  event_id text not null,
  object_table text not null, -- the one name of the object
  object_key text not null,
  record_ids text not null,
  tries integer not null,
  next_at timestamp(6) not null,
  reason text not null,
  constraint {retry_key} primary key (object_hash, first_id)
)
/
create table if not exists {held} (
  object_hash char(64) not null, -- of an object of which events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key text not null,
  constraint {held_key} primary key (object_hash, spelling_hash)
)
/
-- what waited before, one event of an object: it is gone where this script is run again
create table if not exists {waiting} (
  object_hash char(64) not null,
  event_id text not null,
  table_name text not null,
  table_key text not null,
  record_ids text not null,
  tries integer not null,
  next_at timestamp(6) not null,
  reason text not null
)
/
insert into {retry} (
  object_hash, first_id, event_id, object_table, object_key, record_ids, tries, next_at, reason)
select w.object_hash, 0, w.event_id, w.table_name, w.table_key, w.record_ids, w.tries, w.next_at, w.reason
from {waiting} w
where not exists (select null from {retry} r where r.object_hash = w.object_hash)
/
insert into {held} (spelling_hash, object_hash, table_name, table_key)
select w.object_hash, w.object_hash, w.table_name, w.table_key
from {waiting} w
where not exists (select null from {held} h where h.object_hash = w.object_hash)
/
drop table {waiting}
/
