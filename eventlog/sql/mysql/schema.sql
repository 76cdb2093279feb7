-- 0001_companions --
-- Makes the tables beside the log.
create table if not exists {state} (
  one smallint not null,
  attached smallint not null,
  epoch bigint not null,
  leader text,
  leader_since datetime(6),
  paused_at datetime(6),
  paused_by text,
  pause_reason text,
  cycle_at datetime(6),
  cycle_facts longtext,
  heartbeat_at datetime(6),
  constraint {state_key} primary key (one),
  constraint {state_one} check (one = 1)
) engine = InnoDB character set utf8mb4 collate {collation}
/
insert ignore into {state} (one, attached, epoch) values (1, {attached}, 0)
/
create table if not exists {batch} (
  batch bigint not null,
  epoch bigint not null,
  remembered_at datetime(6) not null default (utc_timestamp(6)),
  content longtext not null,
  constraint {batch_key} primary key (batch)
) engine = InnoDB character set utf8mb4 collate {collation}
/
create table if not exists {waiting} (
  object_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key
  event_id text not null,
  table_name text not null,
  table_key longtext not null,
  record_ids longtext not null,
  tries integer not null,
  next_at datetime(6) not null,
  reason longtext not null,
  constraint {waiting_key} primary key (object_hash)
) engine = InnoDB character set utf8mb4 collate {collation}
/
create table if not exists {failed} (
  record_id bigint not null,
  event_id text,
  reason longtext not null,
  document longtext,
  tries integer not null,
  failed_at datetime(6) not null default (utc_timestamp(6)),
  constraint {failed_key} primary key (record_id)
) engine = InnoDB character set utf8mb4 collate {collation}
/
create table if not exists {resync} (
  table_name varchar(255) not null,
  choice text not null,
  last_key longtext, -- null before the first chunk
  rows_logged bigint not null,
  constraint {resync_key} primary key (table_name)
) engine = InnoDB character set utf8mb4 collate {collation}
/
create table if not exists {notice} (
  notice_id bigint not null auto_increment,
  noticed_at datetime(6) not null default (utc_timestamp(6)),
  username text not null default (left(user(), char_length(user()) - locate('@', reverse(user())))),
  kind text not null, -- capture off, skip, purge
  table_name text,
  words longtext,
  constraint {notice_key} primary key (notice_id)
) engine = InnoDB character set utf8mb4 collate {collation}
/

-- 0001_log --
-- Makes the log.
create table if not exists {log} (
  {record_id} bigint not null auto_increment,
  {status} char(1) not null default 'N',
  {event_type} integer not null,
  {event_time} datetime(6) not null default (utc_timestamp(6)),
  {perpetrator} text default (left(user(), char_length(user()) - locate('@', reverse(user())))),
  {table_name} text not null,
  {table_key} longtext not null,
  {column_name} text,
  {old_value} longtext,
  {new_value} longtext,
  constraint {log_key} primary key ({record_id}),
  key {log_pending} ({status}, {record_id})
) engine = InnoDB character set utf8mb4 collate {collation}

-- 0001_pending --
-- Makes the index of pending rows.
set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = {schema_text} and table_name = {log_text} and index_name = {log_pending_text})
/
set @statement = if(@missing, 'create index {log_pending} on {log} ({indexed_status}, {indexed_record_id})', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/

-- 0002_tracked --
-- Makes the record of what is tracked.
create table if not exists {tracked} (
  schema_name varchar(64) not null,
  table_name varchar(64) not null,
  of_schema varchar(64) not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table varchar(64) not null,
  logged_as varchar(129), -- the table_name of its rows, which stays its own for ever, null for a child
  table_id varchar(64), -- by which a table that was made anew is told: none here
  table_owner varchar(255),
  choice longtext, -- what of it is logged, null: nothing any more
  tracked_at datetime(6) not null default (utc_timestamp(6)),
  tracked_by text not null default (left(user(), char_length(user()) - locate('@', reverse(user())))),
  constraint {tracked_key} primary key (schema_name, table_name, of_schema, of_table)
) engine = InnoDB character set utf8mb4 collate {collation}

-- 0003_leader --
-- Adds the leader's session and the highest record_id that went out.
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'leader_session')
/
set @statement = if(@missing, 'alter table {state} add column leader_session text', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'highest_id')
/
set @statement = if(@missing, 'alter table {state} add column highest_id bigint', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/

-- 0004_association --
-- Adds how associations are written.
-- MySQL has no `add column if not exists`
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'association')
/
set @statement = if(@missing, 'alter table {state} add column association varchar(9)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
update {state} set association = '{association}' where association is null
/

-- 0004_holds --
-- Makes the tables of events that wait and of objects that are held, and fills them.
create table if not exists {retry} (
  object_hash char(64) not null, -- SHA-256 of object_table, a zero byte, object_key
  first_id bigint not null, -- the first row of the event
  event_id text not null,
  object_table text not null, -- the one name of the object
  object_key longtext not null,
  record_ids longtext not null,
  tries integer not null,
  next_at datetime(6) not null,
  reason longtext not null,
  constraint {retry_key} primary key (object_hash, first_id)
) engine = InnoDB character set utf8mb4 collate {collation}
/
create table if not exists {held} (
  object_hash char(64) not null, -- of an object of which events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key longtext not null,
  constraint {held_key} primary key (object_hash, spelling_hash)
) engine = InnoDB character set utf8mb4 collate {collation}
/
-- what waited before, one event of an object: it is gone where this script is run again
create table if not exists {waiting} (
  object_hash char(64) not null,
  event_id text not null,
  table_name text not null,
  table_key longtext not null,
  record_ids longtext not null,
  tries integer not null,
  next_at datetime(6) not null,
  reason longtext not null
) engine = InnoDB character set utf8mb4 collate {collation}
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

-- 0005_finish --
-- Adds how rows are finished, and refuses a leader of a version that does not know it.
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'finish_mode')
/
set @statement = if(@missing, 'alter table {state} add column finish_mode varchar(9)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
-- whoever begins an epoch says that it knows the mode: the statement of an older version does not
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'known_epoch')
/
set @statement = if(@missing, 'alter table {state} add column known_epoch bigint, add constraint {state_known} check (known_epoch = epoch)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
update {state} set known_epoch = epoch + least(epoch, 1), epoch = epoch + least(epoch, 1) where known_epoch is null
/

-- 0006_done --
-- Makes the table of what is done, where it stands beside the log, and adds what tells that it belongs to it.
create table if not exists {done} (
  block bigint not null, -- of record_ids; no range goes beyond one
  first_id bigint not null,
  last_id bigint not null,
  letter char(1) not null,
  constraint {done_key} primary key (block, first_id)
) engine = InnoDB character set utf8mb4 collate {collation}
/
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'done_id')
/
set @statement = if(@missing, 'alter table {state} add column done_id bigint', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'done_time')
/
set @statement = if(@missing, 'alter table {state} add column done_time varchar(40)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {state_text} and column_name = 'done_last')
/
set @statement = if(@missing, 'alter table {state} add column done_last bigint', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/

-- 0007_known --
-- Makes the table of what the receiver is known to have, of logs that are filled by comparing.
create table if not exists {known} (
  object_table varchar(200) not null,
  key_hash char(32) not null, -- the digest of object_key; `base` in the row that counts the table's objects
  object_key longtext not null,
  digest char(32), -- of the values that the receiver has; null: it has none
  row_values longtext, -- these values as JSON, unless only digests are kept
  next_digest char(32), -- to which the event on its way leads; null: to none
  next_values longtext,
  first_id bigint, -- the first and the last row of the event that is on its way or failed
  last_id bigint,
  failed smallint not null default 0,
  constraint {known_key} primary key (object_table, key_hash),
  key {known_way} (first_id)
) engine = InnoDB character set utf8mb4 collate {collation}

-- 0008_overtaken --
-- Adds of which object a failed row is, and whether it was overtaken by rows that are gone.
set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {schema_text} and table_name = {failed_text} and column_name = 'object_hash')
/
-- the SHA-256 of table_name, a zero byte, table_key
set @statement = if(@missing, 'alter table {failed} add column object_hash char(64), add column overtaken smallint not null default 0, add key {failed_way} (object_hash)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/

-- 0009_ids --
-- Has the log take no record ids from writers, where the database can refuse them.
do 0
/

-- future --
-- Makes the index of future events.
set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = {schema_text} and table_name = {log_text} and index_name = {log_future_text})
/
set @statement = if(@missing, 'create index {log_future} on {log} ({indexed_status}, {event_time}, {indexed_record_id})', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/

-- default_record_id --
-- Gives record_id its default in a log that has none.
alter table {log} modify column {record_id} bigint not null auto_increment

-- default_status --
-- Gives status its default in a log that has none.
alter table {log} alter column {status} set default 'N'

-- default_event_time --
-- Gives event_time its default in a log that has none.
alter table {log} alter column {event_time} set default (utc_timestamp(6))
