create table if not exists `eventlog_state` (
  one smallint not null,
  attached smallint not null,
  association varchar(9),
  epoch bigint not null,
  leader text,
  leader_session text,
  leader_since datetime(6),
  paused_at datetime(6),
  paused_by text,
  pause_reason text,
  rested_at datetime(6), -- when the publisher began to rest in this pause, null before
  cycle_at datetime(6),
  cycle_facts longtext,
  heartbeat_at datetime(6),
  published_as longtext, -- the settings of the last leader
  slot_facts longtext, -- of the replication slot that fills the log, null: something else does
  constraint `eventlog_state_key` primary key (one),
  constraint `eventlog_state_one` check (one = 1)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

insert ignore into `eventlog_state` (one, attached, association, epoch) values (1, 0, 'canonical', 0);

create table if not exists `eventlog_batch` (
  batch bigint not null,
  epoch bigint not null,
  first_id bigint not null, -- no row of it is lower
  last_id bigint not null,
  remembered_at datetime(6) not null default (utc_timestamp(6)),
  settled_at datetime(6), -- when its rows were finished, null before
  content longtext not null,
  constraint `eventlog_batch_key` primary key (batch)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists `eventlog_retry` (
  object_hash char(64) not null, -- SHA-256 of object_table, a zero byte, object_key
  first_id bigint not null, -- the first row of the event
  event_id text not null,
  object_table text not null, -- the one name of the object
  object_key longtext not null,
  record_ids longtext not null,
  max_changes integer not null, -- after how many values removed or added the event was cut
  tries integer not null,
  next_at datetime(6) not null,
  reason longtext not null,
  constraint `eventlog_retry_key` primary key (object_hash, first_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists `eventlog_held` (
  object_hash char(64) not null, -- of an object whose events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key longtext not null,
  constraint `eventlog_held_key` primary key (object_hash, spelling_hash)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists `eventlog_failed` (
  record_id bigint not null,
  event_id text,
  reason longtext not null,
  document longtext,
  tries integer not null,
  failed_at datetime(6) not null default (utc_timestamp(6)),
  constraint `eventlog_failed_key` primary key (record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

delimiter //
create table if not exists `eventlog_answer` (
  batch bigint not null, -- that had the documents; below 0: people redrove or skipped what had failed
  part integer not null, -- of what was answered to them, equal answers once
  answer varchar(9) not null, -- success, warning, retry, error, fatal, or refused
  words longtext,
  answered_at datetime(6) not null,
  constraint `eventlog_answer_key` primary key (batch, part)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin//
delimiter ;

delimiter //
create table if not exists `eventlog_try` (
  record_id bigint not null,
  try_number integer not null, -- of the row, from 1; a first success is none
  event_id text, -- null: no event could be made of the row
  batch bigint not null,
  part integer not null,
  constraint `eventlog_try_key` primary key (record_id, try_number),
  constraint `eventlog_try_way` unique (batch, part, record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin//
delimiter ;

create table if not exists `eventlog_sent` (
  record_id bigint not null, -- the highest that went out
  constraint `eventlog_sent_key` primary key (record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists `eventlog_resync` (
  table_name varchar(255) not null,
  choice text not null,
  last_key longtext, -- null before the first chunk
  rows_logged bigint not null,
  constraint `eventlog_resync_key` primary key (table_name)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists `eventlog_notice` (
  notice_id bigint not null auto_increment,
  noticed_at datetime(6) not null default (utc_timestamp(6)),
  username text not null default (left(user(), char_length(user()) - locate('@', reverse(user())))),
  -- what happened: `eventlog history` shows each kind
  kind text not null,
  table_name text, -- of the only table
  table_key longtext, -- of the only object
  first_id bigint, -- no row of it is lower
  last_id bigint,
  row_count bigint,
  record_ids longtext, -- as JSON, if rows are listed
  event_id text, -- of the only event
  answer text, -- the letters that the rows had
  who text, -- the person, null: only username is on record
  words longtext, -- the reason, or what no column has
  session_id bigint, -- in which capture was switched off
  constraint `eventlog_notice_key` primary key (notice_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists `eventlog_tracked` (
  schema_name varchar(64) not null,
  table_name varchar(64) not null,
  of_schema varchar(64) not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table varchar(64) not null,
  logged_as varchar(129), -- the table_name of its rows, which stays its own for ever, null for a child
  table_id varchar(64), -- by which a table that was made anew is recognised: none here
  table_owner varchar(255),
  choice longtext, -- what of it is logged, null: nothing any more
  tracked_at datetime(6) not null default (utc_timestamp(6)),
  tracked_by text not null default (left(user(), char_length(user()) - locate('@', reverse(user())))),
  constraint `eventlog_tracked_key` primary key (schema_name, table_name, of_schema, of_table)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

delimiter //
create table if not exists `eventlog_known` (
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
  constraint `eventlog_known_key` primary key (object_table, key_hash),
  key `eventlog_known_way` (first_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin//
delimiter ;

create table if not exists `eventlog` (
  `record_id` bigint not null auto_increment,
  `status` char(1) not null default 'N',
  `event_type` integer not null,
  `event_time` datetime(6) not null default (utc_timestamp(6)),
  `perpetrator` text default (left(user(), char_length(user()) - locate('@', reverse(user())))),
  `table_name` text not null,
  `table_key` longtext not null,
  `column_name` text,
  `old_value` longtext,
  `new_value` longtext,
  constraint `eventlog_key` primary key (`record_id`),
  key `eventlog_pending` (`status`, `record_id`)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

create index if not exists `eventlog_pending` on `eventlog` (`status`, `record_id`);

create table if not exists `eventlog_version` (
  version_num varchar(32) not null,
  constraint `eventlog_version_pkc` primary key (version_num)
);

insert into `eventlog_version` (version_num)
select '0001' from (select count(*) as installed from `eventlog_version`) as v where installed = 0;

update `eventlog_version` set version_num = '0001' where version_num < '0001';

create index if not exists `eventlog_future` on `eventlog` (`status`, `event_time`, `record_id`);

set time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

delimiter //
create or replace procedure `eventlog_event`(
  in an_event_type integer,
  in a_table_name text character set utf8mb4,
  in a_table_key longtext character set utf8mb4,
  in a_column_name text character set utf8mb4,
  in an_old_value longtext character set utf8mb4,
  in a_new_value longtext character set utf8mb4
)
sql security definer
modifies sql data
begin
  set insert_id = 0;
  insert into `eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
  values (an_event_type, left(user(), char_length(user()) - locate('@', reverse(user()))), a_table_name, a_table_key, a_column_name, an_old_value, a_new_value);
end//
delimiter ;

delimiter //
create or replace function `eventlog_key_value`(value longtext character set utf8mb4) returns longtext character set utf8mb4
deterministic
no sql
begin
  return case when value regexp '[,;''+"=\\<>]' then concat('"', replace(replace(value, '\', '\\'), '"', '\"'), '"') else value end;
end//
delimiter ;

delimiter //
create or replace procedure `eventlog_capture_off`(in reason text character set utf8mb4)
sql security definer
modifies sql data
begin
  insert into `eventlog_notice` (username, kind, session_id, words)
  values (left(user(), char_length(user()) - locate('@', reverse(user()))), 'capture off', connection_id(), reason);
  set @eventlog_capture = last_insert_id();
end//
delimiter ;

delimiter //
create or replace procedure `eventlog_capture_on`()
begin
  set @eventlog_capture = null;
end//
delimiter ;

