-- version --
-- Makes the table of revisions, and notes this one.
create table if not exists {version} (
  version_num varchar(32) not null,
  constraint {version_pkc} primary key (version_num)
)
/
insert into {version} (version_num)
select {revision} from (select count(*) as installed from {version}) as v where installed = 0
/
update {version} set version_num = {revision} where version_num < {revision}
/

-- 0001_companions --
-- Makes the tables beside the log.
create table if not exists {state} (
  one {type_small} not null,
  attached {type_small} not null,
  epoch {type_bigint} not null,
  leader {type_text},
  leader_since {type_moment},
  paused_at {type_moment},
  paused_by {type_text},
  pause_reason {type_text},
  cycle_at {type_moment},
  cycle_facts {type_long},
  heartbeat_at {type_moment},
  constraint {state_key} primary key (one),
  constraint {state_one} check (one = 1)
){table_end}
/
@first_state
/
create table if not exists {batch} (
  batch {type_bigint} not null,
  epoch {type_bigint} not null,
  remembered_at {type_written_at},
  content {type_long} not null,
  constraint {batch_key} primary key (batch)
){table_end}
/
create table if not exists {waiting} (
  object_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key
  event_id {type_text} not null,
  table_name {type_text} not null,
  table_key {type_key} not null,
  record_ids {type_long} not null,
  tries {type_integer} not null,
  next_at {type_moment} not null,
  reason {type_long} not null,
  constraint {waiting_key} primary key (object_hash)
){table_end}
/
create table if not exists {failed} (
  record_id {type_bigint} not null,
  event_id {type_text},
  reason {type_long} not null,
  document {type_long},
  tries {type_integer} not null,
  failed_at {type_written_at},
  constraint {failed_key} primary key (record_id)
){table_end}
/
create table if not exists {resync} (
  table_name {type_table} not null,
  choice {type_text} not null,
  last_key {type_long}, -- null before the first chunk
  rows_logged {type_bigint} not null,
  constraint {resync_key} primary key (table_name)
){table_end}
/
create table if not exists {notice} (
  notice_id {type_identity},
  noticed_at {type_written_at},
  username {type_written_by},
  kind {type_text} not null, -- capture off, skip, purge
  table_name {type_text},
  words {type_long},
  constraint {notice_key} primary key (notice_id)
){table_end}
/

-- 0001_drop_log --
-- Drops the log.
drop table if exists {log}

-- 0001_drop_companions --
-- Drops the tables beside the log.
drop table if exists {notice}
/
drop table if exists {resync}
/
drop table if exists {failed}
/
drop table if exists {waiting}
/
drop table if exists {batch}
/
@drop_lock
/
drop table if exists {state}
/

-- drop_lock --
-- Drops the table that a leader locks, where there is one.

-- 0002_tracked --
-- Makes the record of what is tracked.
create table if not exists {tracked} (
  schema_name {type_name} not null,
  table_name {type_name} not null,
  of_schema {type_name} not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table {type_name} not null,
  logged_as {type_qualified}, -- the table_name of its rows, which stays its own for ever, null for a child
  table_id {type_name}, -- by which a table that was made anew is told
  table_owner {type_name},
  choice {type_long}, -- what of it is logged, null: nothing any more
  tracked_at {type_written_at},
  tracked_by {type_written_by},
  constraint {tracked_key} primary key (schema_name, table_name, of_schema, of_table)
){table_end}

-- 0002_drop_tracked --
-- Drops the record of what is tracked.
drop table if exists {tracked}

-- 0003_leader --
-- Adds the leader's session and the highest record_id that went out.
alter table {state} add column if not exists leader_session {type_text}
/
alter table {state} add column if not exists highest_id {type_bigint}
/

-- 0004_association --
-- Adds how associations are written.
alter table {state} add column if not exists association {type_word}
/
update {state} set association = '{association}' where association is null
/

-- 0004_holds --
-- Makes the tables of events that wait and of objects that are held, and fills them.
create table if not exists {retry} (
  object_hash char(64) not null, -- SHA-256 of object_table, a zero byte, object_key
  first_id {type_bigint} not null, -- the first row of the event
  event_id {type_text} not null,
  object_table {type_text} not null, -- the one name of the object
  object_key {type_key} not null,
  record_ids {type_long} not null,
  max_changes {type_integer} not null, -- after how many values removed or added the event was cut
  tries {type_integer} not null,
  next_at {type_moment} not null,
  reason {type_long} not null,
  constraint {retry_key} primary key (object_hash, first_id)
){table_end}
/
create table if not exists {held} (
  object_hash char(64) not null, -- of an object of which events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name {type_text} not null,
  table_key {type_key} not null,
  constraint {held_key} primary key (object_hash, spelling_hash)
){table_end}
/
-- what waited before, one event of an object: it is gone where this script is run again
create table if not exists {waiting} (
  object_hash char(64) not null,
  event_id {type_text} not null,
  table_name {type_text} not null,
  table_key {type_key} not null,
  record_ids {type_long} not null,
  tries {type_integer} not null,
  next_at {type_moment} not null,
  reason {type_long} not null
){table_end}
/
insert into {retry} (
  object_hash, first_id, event_id, object_table, object_key, record_ids, max_changes, tries, next_at, reason)
select w.object_hash, 0, w.event_id, w.table_name, w.table_key, w.record_ids, 1000, w.tries, w.next_at, w.reason
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

-- 0004_drop_holds --
-- Drops the tables of events that wait and of objects that are held.
drop table if exists {held}
/
drop table if exists {retry}
/

-- 0005_finish --
-- Adds how rows are finished, and refuses a leader of a version that does not know it.
alter table {state} add column if not exists finish_mode {type_word}
/
@known_epoch
/
update {state} set known_epoch = epoch + least(epoch, 1), epoch = epoch + least(epoch, 1) where known_epoch is null
/

-- 0006_done --
-- Makes the table of what is done, where it stands beside the log, and adds what tells that it belongs to it.
create table if not exists {done} (
  block {type_bigint} not null, -- of record_ids; no range goes beyond one
  first_id {type_bigint} not null,
  last_id {type_bigint} not null,
  letter char(1) not null,
  constraint {done_key} primary key (block, first_id)
){table_end}
/
alter table {state} add column if not exists done_id {type_bigint}
/
alter table {state} add column if not exists done_time {type_time_text}
/
alter table {state} add column if not exists done_last {type_bigint}
/

-- 0006_rows --
-- Makes the view of the log's rows with their letters, wherever these stand.
create or replace view {rows_view} as
select
  r.{record_id},
  case
    when r.{status} = 'N' then coalesce((
      select d.letter
      from {done} d
      where d.block = {block_of_row} and r.{record_id} between d.first_id and d.last_id
    ), 'N')
    else r.{status}
  end as {status},
  r.{event_type},
  r.{event_time},
  r.{perpetrator},
  r.{table_name},
  r.{table_key},
  r.{column_name},
  r.{old_value},
  r.{new_value}
from {log} r

-- 0006_drop_rows --
-- Drops the view of the log's rows.
drop view if exists {rows_view}

-- 0006_drop_done --
-- Drops the table of what is done.
drop table if exists {done}

-- 0007_drop_known --
-- Drops the table of what the receiver is known to have.
drop table if exists {known}

-- 0008_overtaken --
-- Adds of which object a failed row is, and whether it was overtaken by rows that are gone.
-- the SHA-256 of table_name, a zero byte, table_key
alter table {failed} add column if not exists object_hash char(64)
/
alter table {failed} add column if not exists overtaken {type_flag}
/
create index if not exists {failed_way} on {failed} (object_hash)
/

-- 0010_sent --
-- Makes the table of the highest record_id that went out: it gets a row with each higher one.
create table if not exists {sent} (
  record_id {type_bigint} not null,
  constraint {sent_key} primary key (record_id)
){table_end}
/
insert into {sent} (record_id)
select s.highest_id from {state} s
where s.highest_id is not null and not exists (select null from {sent} h)
/
-- it is kept there no longer
update {state} set highest_id = null where highest_id is not null
/

-- 0010_drop_sent --
-- Drops the table of the highest record_id that went out.
drop table if exists {sent}

-- grants --
-- What a publisher needs that is not the log's owner.
grant select, update ({status}, {event_type}), delete on {log} to {role}
/
grant select, update on {state} to {role}
/
grant select, insert, update, delete on {batch} to {role}
/
grant select, insert, delete on {sent} to {role}
/
grant select, insert, update, delete on {retry} to {role}
/
grant select, insert, update, delete on {held} to {role}
/
grant select, insert, update, delete on {failed} to {role}
/
grant select, insert, update, delete on {done} to {role}
/
grant select, insert on {notice} to {role}
/
grant select on {tracked} to {role}
/

-- grants_comparing --
-- What a publisher needs beside, that compares states.
grant insert on {log} to {role}
/
grant select, insert, update, delete on {known} to {role}
/

-- drop_pending --
-- Nothing: the pick-up names the index of pending rows, or reads by it.

-- make_pending --
-- Nothing, because the index was not dropped.

-- unpublished --
-- How many rows are not published.
select count(*) from {log} where {status} in ('N', 'E', 'F')
