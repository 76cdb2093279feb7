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

-- create_companions --
-- Makes the tables next to the log.
create table if not exists {state} (
  one {type_small} not null,
  attached {type_small} not null,
  association {type_word},
  epoch {type_bigint} not null,
  leader {type_text},
  leader_session {type_text},
  leader_since {type_moment},
  paused_at {type_moment},
  paused_by {type_text},
  pause_reason {type_text},
  rested_at {type_moment}, -- when the publisher began to rest in this pause, null before
  cycle_at {type_moment},
  cycle_facts {type_long},
  heartbeat_at {type_moment},
  published_as {type_long}, -- the settings of the last leader
  slot_facts {type_long}, -- of the replication slot that fills the log, null: something else does
  constraint {state_key} primary key (one),
  constraint {state_one} check (one = 1)
){table_end}
/
@first_state
/
create table if not exists {batch} (
  batch {type_bigint} not null,
  epoch {type_bigint} not null,
  first_id {type_bigint} not null, -- no row of it is lower
  last_id {type_bigint} not null,
  remembered_at {type_written_at},
  settled_at {type_moment}, -- when its rows were finished, null before
  content {type_long} not null,
  constraint {batch_key} primary key (batch)
){table_end}
/
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
  object_hash char(64) not null, -- of an object whose events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name {type_text} not null,
  table_key {type_key} not null,
  constraint {held_key} primary key (object_hash, spelling_hash)
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
create table if not exists {answer} (
  batch {type_bigint} not null, -- that had the documents; below 0: people redrove or skipped what had failed
  part {type_integer} not null, -- of what was answered to them, equal answers once
  answer {type_word} not null, -- success, warning, retry, error, fatal, or refused
  words {type_long},
  answered_at {type_moment} not null,
  constraint {answer_key} primary key (batch, part)
){table_end}
/
create table if not exists {try} (
  record_id {type_bigint} not null,
  try_number {type_integer} not null, -- of the row, from 1; a first success is none
  event_id {type_text}, -- null: no event could be made of the row
  batch {type_bigint} not null,
  part {type_integer} not null,
  constraint {try_key} primary key (record_id, try_number),
  constraint {try_way} unique (batch, part, record_id)
){table_end}
/
create table if not exists {sent} (
  record_id {type_bigint} not null, -- the highest that went out
  constraint {sent_key} primary key (record_id)
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
  -- what happened: `eventlog history` shows each kind
  kind {type_text} not null,
  table_name {type_text}, -- of the only table
  table_key {type_key}, -- of the only object
  first_id {type_bigint}, -- no row of it is lower
  last_id {type_bigint},
  row_count {type_bigint},
  record_ids {type_long}, -- as JSON, if rows are listed
  event_id {type_text}, -- of the only event
  answer {type_text}, -- the letters that the rows had
  who {type_text}, -- the person, null: only username is on record
  words {type_long}, -- the reason, or what no column has
  session_id {type_bigint}, -- in which capture was switched off
  constraint {notice_key} primary key (notice_id)
){table_end}
/
@create_slot
/
@create_tracked
/

-- create_slot --
-- Makes the table of the position up to which the changes of a slot are in the log, where there are slots.

-- create_tracked --
-- Makes the record of what is tracked.
create table if not exists {tracked} (
  schema_name {type_name} not null,
  table_name {type_name} not null,
  of_schema {type_name} not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table {type_name} not null,
  logged_as {type_qualified}, -- the table_name of its rows, which stays its own for ever, null for a child
  table_id {type_name}, -- by which a table that was made anew is recognised
  table_owner {type_name},
  choice {type_long}, -- what of it is logged, null: nothing any more
  tracked_at {type_written_at},
  tracked_by {type_written_by},
  constraint {tracked_key} primary key (schema_name, table_name, of_schema, of_table)
){table_end}

-- drop_log --
-- Drops the log.
drop table if exists {log}

-- drop_companions --
-- Drops the tables next to the log.
drop table if exists {known}
/
drop table if exists {slot}
/
drop table if exists {try}
/
drop table if exists {answer}
/
drop table if exists {sent}
/
drop table if exists {held}
/
drop table if exists {retry}
/
drop table if exists {tracked}
/
drop table if exists {notice}
/
drop table if exists {resync}
/
drop table if exists {failed}
/
drop table if exists {batch}
/
@drop_lock
/
drop table if exists {state}
/

-- drop_version --
-- Drops the table of revisions, after all others.
drop table if exists {version}

-- drop_lock --
-- Drops the table that a leader locks, where there is one.

-- grants --
-- What a publisher needs that is not the log's owner.
grant select, update ({status}, {event_type}), delete on {log} to {role}
/
grant select, update on {state} to {role}
/
grant select, insert, update, delete on {batch} to {role}
/
grant select, insert, delete on {answer} to {role}
/
grant select, insert, delete on {try} to {role}
/
grant select, insert, delete on {sent} to {role}
/
grant select, insert, update, delete on {retry} to {role}
/
grant select, insert, update, delete on {held} to {role}
/
grant select, insert, update, delete on {failed} to {role}
/
grant select, insert on {notice} to {role}
/
grant select on {tracked} to {role}
/
grant select on {version} to {role}
/
grant select, update on {known} to {role}
/

-- grants_comparing --
-- What a publisher needs beside, that compares states.
grant insert on {log} to {role}
/
grant select, insert, update, delete on {known} to {role}
/
