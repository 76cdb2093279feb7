create table usr (idu integer primary key, fname varchar(64), lname varchar(64))
/
create table usr_phone (idp integer primary key, idu integer references usr (idu), n varchar(9))
/
create table dept (idd integer primary key, name varchar(64), photo varchar(64))
/
create table grp (idg varchar(20) primary key, name varchar(64))
/
create table item (a integer not null, b varchar(20) not null, price decimal(9, 2), primary key (a, b))
/
create table pet (idp integer primary key, name varchar(64))
/
insert into `usr` (`idu`, `fname`, `lname`) values (1, 'changed', 'Frost')
/
insert into `usr` (`idu`, `fname`, `lname`) values (2, 'changed', 'Frost')
/
insert into `usr` (`idu`, `fname`, `lname`) values (3, 'changed', 'held')
/
insert into `usr` (`idu`, `fname`, `lname`) values (4, 'changed', 'Frost')
/
insert into `usr` (`idu`, `fname`, `lname`) values (5, 'changed', 'Frost')
/
insert into `usr` (`idu`, `fname`, `lname`) values (6, 'Jane', 'Frost')
/
insert into `usr` (`idu`, `fname`, `lname`) values (7, 'changed', 'Frost')
/
insert into `dept` (`idd`, `name`, `photo`) values (1, 'd1', 'p')
/
insert into `dept` (`idd`, `name`, `photo`) values (2, 'd2', 'p')
/
insert into `dept` (`idd`, `name`, `photo`) values (3, 'd3', 'p')
/
insert into `dept` (`idd`, `name`, `photo`) values (4, 'd4', 'p')
/
insert into `dept` (`idd`, `name`, `photo`) values (5, 'd5', 'p')
/
insert into `pet` (`idp`, `name`) values (1, 'Rex I')
/
insert into `pet` (`idp`, `name`) values (2, 'Mimi')
/
CREATE TABLE eventlog_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT eventlog_version_pkc PRIMARY KEY (version_num)
)
/
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
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `eventlog_batch` (
  batch bigint not null,
  epoch bigint not null,
  first_id bigint not null, -- no row of it is lower
  last_id bigint not null,
  remembered_at datetime(6) not null default (utc_timestamp(6)),
  settled_at datetime(6), -- when its rows were finished, null before
  content longtext not null,
  constraint `eventlog_batch_key` primary key (batch)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
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
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `eventlog_held` (
  object_hash char(64) not null, -- of an object whose events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key longtext not null,
  constraint `eventlog_held_key` primary key (object_hash, spelling_hash)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `eventlog_failed` (
  record_id bigint not null,
  event_id text,
  reason longtext not null,
  document longtext,
  tries integer not null,
  failed_at datetime(6) not null default (utc_timestamp(6)),
  constraint `eventlog_failed_key` primary key (record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `eventlog_answer` (
  batch bigint not null, -- that had the documents; below 0: people redrove or skipped what had failed
  part integer not null, -- of what was answered to them, equal answers once
  answer varchar(9) not null, -- success, warning, retry, error, fatal, or refused
  words longtext,
  answered_at datetime(6) not null,
  constraint `eventlog_answer_key` primary key (batch, part)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `eventlog_try` (
  record_id bigint not null,
  try_number integer not null, -- of the row, from 1; a first success is none
  event_id text, -- null: no event could be made of the row
  batch bigint not null,
  part integer not null,
  constraint `eventlog_try_key` primary key (record_id, try_number),
  constraint `eventlog_try_way` unique (batch, part, record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `eventlog_sent` (
  record_id bigint not null, -- the highest that went out
  constraint `eventlog_sent_key` primary key (record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `eventlog_resync` (
  table_name varchar(255) not null,
  choice text not null,
  last_key longtext, -- null before the first chunk
  rows_logged bigint not null,
  constraint `eventlog_resync_key` primary key (table_name)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
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
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
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
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
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
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
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
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = database() and table_name = 'eventlog' and index_name = 'eventlog_pending')
/
set @statement = if(@missing, 'create index `eventlog_pending` on `eventlog` (`status`, `record_id`)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = database() and table_name = 'eventlog' and index_name = 'eventlog_future')
/
set @statement = if(@missing, 'create index `eventlog_future` on `eventlog` (`status`, `event_time`, `record_id`)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
CREATE TABLE compared_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT compared_version_pkc PRIMARY KEY (version_num)
)
/
create table if not exists `compared_state` (
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
  constraint `compared_state_key` primary key (one),
  constraint `compared_state_one` check (one = 1)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_batch` (
  batch bigint not null,
  epoch bigint not null,
  first_id bigint not null, -- no row of it is lower
  last_id bigint not null,
  remembered_at datetime(6) not null default (utc_timestamp(6)),
  settled_at datetime(6), -- when its rows were finished, null before
  content longtext not null,
  constraint `compared_batch_key` primary key (batch)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_retry` (
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
  constraint `compared_retry_key` primary key (object_hash, first_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_held` (
  object_hash char(64) not null, -- of an object whose events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key longtext not null,
  constraint `compared_held_key` primary key (object_hash, spelling_hash)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_failed` (
  record_id bigint not null,
  event_id text,
  reason longtext not null,
  document longtext,
  tries integer not null,
  failed_at datetime(6) not null default (utc_timestamp(6)),
  constraint `compared_failed_key` primary key (record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_answer` (
  batch bigint not null, -- that had the documents; below 0: people redrove or skipped what had failed
  part integer not null, -- of what was answered to them, equal answers once
  answer varchar(9) not null, -- success, warning, retry, error, fatal, or refused
  words longtext,
  answered_at datetime(6) not null,
  constraint `compared_answer_key` primary key (batch, part)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_try` (
  record_id bigint not null,
  try_number integer not null, -- of the row, from 1; a first success is none
  event_id text, -- null: no event could be made of the row
  batch bigint not null,
  part integer not null,
  constraint `compared_try_key` primary key (record_id, try_number),
  constraint `compared_try_way` unique (batch, part, record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_sent` (
  record_id bigint not null, -- the highest that went out
  constraint `compared_sent_key` primary key (record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_resync` (
  table_name varchar(255) not null,
  choice text not null,
  last_key longtext, -- null before the first chunk
  rows_logged bigint not null,
  constraint `compared_resync_key` primary key (table_name)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_notice` (
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
  constraint `compared_notice_key` primary key (notice_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_tracked` (
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
  constraint `compared_tracked_key` primary key (schema_name, table_name, of_schema, of_table)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared_known` (
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
  constraint `compared_known_key` primary key (object_table, key_hash),
  key `compared_known_way` (first_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `compared` (
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
  constraint `compared_key` primary key (`record_id`),
  key `compared_pending` (`status`, `record_id`)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = database() and table_name = 'compared' and index_name = 'compared_pending')
/
set @statement = if(@missing, 'create index `compared_pending` on `compared` (`status`, `record_id`)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = database() and table_name = 'compared' and index_name = 'compared_future')
/
set @statement = if(@missing, 'create index `compared_future` on `compared` (`status`, `event_time`, `record_id`)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
CREATE TABLE slotted_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT slotted_version_pkc PRIMARY KEY (version_num)
)
/
create table if not exists `slotted_state` (
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
  constraint `slotted_state_key` primary key (one),
  constraint `slotted_state_one` check (one = 1)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_batch` (
  batch bigint not null,
  epoch bigint not null,
  first_id bigint not null, -- no row of it is lower
  last_id bigint not null,
  remembered_at datetime(6) not null default (utc_timestamp(6)),
  settled_at datetime(6), -- when its rows were finished, null before
  content longtext not null,
  constraint `slotted_batch_key` primary key (batch)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_retry` (
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
  constraint `slotted_retry_key` primary key (object_hash, first_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_held` (
  object_hash char(64) not null, -- of an object whose events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key longtext not null,
  constraint `slotted_held_key` primary key (object_hash, spelling_hash)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_failed` (
  record_id bigint not null,
  event_id text,
  reason longtext not null,
  document longtext,
  tries integer not null,
  failed_at datetime(6) not null default (utc_timestamp(6)),
  constraint `slotted_failed_key` primary key (record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_answer` (
  batch bigint not null, -- that had the documents; below 0: people redrove or skipped what had failed
  part integer not null, -- of what was answered to them, equal answers once
  answer varchar(9) not null, -- success, warning, retry, error, fatal, or refused
  words longtext,
  answered_at datetime(6) not null,
  constraint `slotted_answer_key` primary key (batch, part)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_try` (
  record_id bigint not null,
  try_number integer not null, -- of the row, from 1; a first success is none
  event_id text, -- null: no event could be made of the row
  batch bigint not null,
  part integer not null,
  constraint `slotted_try_key` primary key (record_id, try_number),
  constraint `slotted_try_way` unique (batch, part, record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_sent` (
  record_id bigint not null, -- the highest that went out
  constraint `slotted_sent_key` primary key (record_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_resync` (
  table_name varchar(255) not null,
  choice text not null,
  last_key longtext, -- null before the first chunk
  rows_logged bigint not null,
  constraint `slotted_resync_key` primary key (table_name)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_notice` (
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
  constraint `slotted_notice_key` primary key (notice_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_tracked` (
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
  constraint `slotted_tracked_key` primary key (schema_name, table_name, of_schema, of_table)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted_known` (
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
  constraint `slotted_known_key` primary key (object_table, key_hash),
  key `slotted_known_way` (first_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
create table if not exists `slotted` (
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
  constraint `slotted_key` primary key (`record_id`),
  key `slotted_pending` (`status`, `record_id`)
) engine = InnoDB character set utf8mb4 collate utf8mb4_0900_bin
/
set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = database() and table_name = 'slotted' and index_name = 'slotted_pending')
/
set @statement = if(@missing, 'create index `slotted_pending` on `slotted` (`status`, `record_id`)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = database() and table_name = 'slotted' and index_name = 'slotted_future')
/
set @statement = if(@missing, 'create index `slotted_future` on `slotted` (`status`, `event_time`, `record_id`)', 'do 0')
/
prepare eventlog_statement from @statement
/
execute eventlog_statement
/
deallocate prepare eventlog_statement
/
create procedure `database_of_the_fixture`.`eventlog_event`(
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
  if @@session.insert_id <> 0 then
    signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
  end if;
  insert into `eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
  values (an_event_type, left(user(), char_length(user()) - locate('@', reverse(user()))), a_table_name, a_table_key, a_column_name, an_old_value, a_new_value);
end
/
create function `database_of_the_fixture`.`eventlog_key_value`(value longtext character set utf8mb4) returns longtext character set utf8mb4
deterministic
no sql
begin
  return case when value regexp '[,;''+"=\\<>]' then concat('"', replace(replace(value, '\', '\\'), '"', '\"'), '"') else value end;
end
/
create procedure `database_of_the_fixture`.`eventlog_capture_off`(in reason text character set utf8mb4)
sql security definer
modifies sql data
begin
  insert into `eventlog_notice` (username, kind, session_id, words)
  values (left(user(), char_length(user()) - locate('@', reverse(user()))), 'capture off', connection_id(), reason);
  set @eventlog_capture = last_insert_id();
end
/
create procedure `database_of_the_fixture`.`eventlog_capture_on`()
begin
  set @eventlog_capture = null;
end
/
create trigger `database_of_the_fixture`.`eventlog$usr$insert$trial` after insert on `database_of_the_fixture`.`usr` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`fname` is not null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', null, convert(new.`fname` using utf8mb4));
    end if;
    if new.`lname` is not null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'lname', null, convert(new.`lname` using utf8mb4));
    end if;
    if new.`fname` is null and new.`lname` is null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', null, null);
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$usr$insert$trial`
/
create trigger `database_of_the_fixture`.`eventlog$usr$insert` after insert on `database_of_the_fixture`.`usr` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`fname` is not null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', null, convert(new.`fname` using utf8mb4));
    end if;
    if new.`lname` is not null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'lname', null, convert(new.`lname` using utf8mb4));
    end if;
    if new.`fname` is null and new.`lname` is null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', null, null);
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$usr$update$trial` after update on `database_of_the_fixture`.`usr` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`idu` <=> new.`idu`) then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (4, who, 'usr', concat('idu=', convert(old.`idu` + 0 using utf8mb4)));
      if new.`fname` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', null, convert(new.`fname` using utf8mb4));
      end if;
      if new.`lname` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'lname', null, convert(new.`lname` using utf8mb4));
      end if;
      if new.`fname` is null and new.`lname` is null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', null, null);
      end if;
    else
      if not (cast(convert(old.`fname` using utf8mb4) as binary) <=> cast(convert(new.`fname` using utf8mb4) as binary)) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', convert(old.`fname` using utf8mb4), convert(new.`fname` using utf8mb4));
      end if;
      if not (cast(convert(old.`lname` using utf8mb4) as binary) <=> cast(convert(new.`lname` using utf8mb4) as binary)) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'lname', convert(old.`lname` using utf8mb4), convert(new.`lname` using utf8mb4));
      end if;
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$usr$update$trial`
/
create trigger `database_of_the_fixture`.`eventlog$usr$update` after update on `database_of_the_fixture`.`usr` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`idu` <=> new.`idu`) then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (4, who, 'usr', concat('idu=', convert(old.`idu` + 0 using utf8mb4)));
      if new.`fname` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', null, convert(new.`fname` using utf8mb4));
      end if;
      if new.`lname` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'lname', null, convert(new.`lname` using utf8mb4));
      end if;
      if new.`fname` is null and new.`lname` is null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', null, null);
      end if;
    else
      if not (cast(convert(old.`fname` using utf8mb4) as binary) <=> cast(convert(new.`fname` using utf8mb4) as binary)) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'fname', convert(old.`fname` using utf8mb4), convert(new.`fname` using utf8mb4));
      end if;
      if not (cast(convert(old.`lname` using utf8mb4) as binary) <=> cast(convert(new.`lname` using utf8mb4) as binary)) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'lname', convert(old.`lname` using utf8mb4), convert(new.`lname` using utf8mb4));
      end if;
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$usr$delete$trial` after delete on `database_of_the_fixture`.`usr` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (4, who, 'usr', concat('idu=', convert(old.`idu` + 0 using utf8mb4)));
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$usr$delete$trial`
/
create trigger `database_of_the_fixture`.`eventlog$usr$delete` after delete on `database_of_the_fixture`.`usr` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (4, who, 'usr', concat('idu=', convert(old.`idu` + 0 using utf8mb4)));
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$usr_phone$usr$insert$trial` after insert on `database_of_the_fixture`.`usr_phone` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`idu` is not null then
      if new.`n` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.n', null, convert(new.`n` using utf8mb4));
      end if;
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$usr_phone$usr$insert$trial`
/
create trigger `database_of_the_fixture`.`eventlog$usr_phone$usr$insert` after insert on `database_of_the_fixture`.`usr_phone` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`idu` is not null then
      if new.`n` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.n', null, convert(new.`n` using utf8mb4));
      end if;
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$usr_phone$usr$update$trial` after update on `database_of_the_fixture`.`usr_phone` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`idu` <=> new.`idu`) then
      if exists (select 1 from `database_of_the_fixture`.`usr` p where p.`idu` = old.`idu`) then
        if old.`n` is not null then
          insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('idu=', convert(old.`idu` + 0 using utf8mb4)), 'usr_phone.n', convert(old.`n` using utf8mb4), null);
        end if;
      end if;
      if new.`idu` is not null then
        if new.`n` is not null then
          insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.n', null, convert(new.`n` using utf8mb4));
        end if;
      end if;
    else
      if new.`idu` is not null then
        if not (cast(convert(old.`n` using utf8mb4) as binary) <=> cast(convert(new.`n` using utf8mb4) as binary)) then
          insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.n', convert(old.`n` using utf8mb4), convert(new.`n` using utf8mb4));
        end if;
      end if;
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$usr_phone$usr$update$trial`
/
create trigger `database_of_the_fixture`.`eventlog$usr_phone$usr$update` after update on `database_of_the_fixture`.`usr_phone` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`idu` <=> new.`idu`) then
      if exists (select 1 from `database_of_the_fixture`.`usr` p where p.`idu` = old.`idu`) then
        if old.`n` is not null then
          insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('idu=', convert(old.`idu` + 0 using utf8mb4)), 'usr_phone.n', convert(old.`n` using utf8mb4), null);
        end if;
      end if;
      if new.`idu` is not null then
        if new.`n` is not null then
          insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.n', null, convert(new.`n` using utf8mb4));
        end if;
      end if;
    else
      if new.`idu` is not null then
        if not (cast(convert(old.`n` using utf8mb4) as binary) <=> cast(convert(new.`n` using utf8mb4) as binary)) then
          insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.n', convert(old.`n` using utf8mb4), convert(new.`n` using utf8mb4));
        end if;
      end if;
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$usr_phone$usr$delete$trial` after delete on `database_of_the_fixture`.`usr_phone` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if exists (select 1 from `database_of_the_fixture`.`usr` p where p.`idu` = old.`idu`) then
      if old.`n` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('idu=', convert(old.`idu` + 0 using utf8mb4)), 'usr_phone.n', convert(old.`n` using utf8mb4), null);
      end if;
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$usr_phone$usr$delete$trial`
/
create trigger `database_of_the_fixture`.`eventlog$usr_phone$usr$delete` after delete on `database_of_the_fixture`.`usr_phone` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["database_of_the_fixture.usr_phone.n"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if exists (select 1 from `database_of_the_fixture`.`usr` p where p.`idu` = old.`idu`) then
      if old.`n` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('idu=', convert(old.`idu` + 0 using utf8mb4)), 'usr_phone.n', convert(old.`n` using utf8mb4), null);
      end if;
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$dept$insert$trial` after insert on `database_of_the_fixture`.`dept` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"without": ["photo"]}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (5, who, 'dept', concat('idd=', convert(new.`idd` + 0 using utf8mb4)));
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$dept$insert$trial`
/
create trigger `database_of_the_fixture`.`eventlog$dept$insert` after insert on `database_of_the_fixture`.`dept` for each row
begin
  declare mark longtext default 'eventlog track {"without": ["photo"]}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (5, who, 'dept', concat('idd=', convert(new.`idd` + 0 using utf8mb4)));
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$dept$update$trial` after update on `database_of_the_fixture`.`dept` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"without": ["photo"]}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`idd` <=> new.`idd`) then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (4, who, 'dept', concat('idd=', convert(old.`idd` + 0 using utf8mb4)));
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (5, who, 'dept', concat('idd=', convert(new.`idd` + 0 using utf8mb4)));
    else
      if not (cast(convert(old.`name` using utf8mb4) as binary) <=> cast(convert(new.`name` using utf8mb4) as binary)) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
        values (6, who, 'dept', concat('idd=', convert(new.`idd` + 0 using utf8mb4)));
      end if;
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$dept$update$trial`
/
create trigger `database_of_the_fixture`.`eventlog$dept$update` after update on `database_of_the_fixture`.`dept` for each row
begin
  declare mark longtext default 'eventlog track {"without": ["photo"]}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`idd` <=> new.`idd`) then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (4, who, 'dept', concat('idd=', convert(old.`idd` + 0 using utf8mb4)));
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (5, who, 'dept', concat('idd=', convert(new.`idd` + 0 using utf8mb4)));
    else
      if not (cast(convert(old.`name` using utf8mb4) as binary) <=> cast(convert(new.`name` using utf8mb4) as binary)) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
        values (6, who, 'dept', concat('idd=', convert(new.`idd` + 0 using utf8mb4)));
      end if;
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$dept$delete$trial` after delete on `database_of_the_fixture`.`dept` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"without": ["photo"]}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (4, who, 'dept', concat('idd=', convert(old.`idd` + 0 using utf8mb4)));
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$dept$delete$trial`
/
create trigger `database_of_the_fixture`.`eventlog$dept$delete` after delete on `database_of_the_fixture`.`dept` for each row
begin
  declare mark longtext default 'eventlog track {"without": ["photo"]}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (4, who, 'dept', concat('idd=', convert(old.`idd` + 0 using utf8mb4)));
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$grp$insert$trial` after insert on `database_of_the_fixture`.`grp` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"delete": null, "insert": 7, "update": 8}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`name` is not null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (7, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
    end if;
    if new.`name` is null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (7, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$grp$insert$trial`
/
create trigger `database_of_the_fixture`.`eventlog$grp$insert` after insert on `database_of_the_fixture`.`grp` for each row
begin
  declare mark longtext default 'eventlog track {"delete": null, "insert": 7, "update": 8}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`name` is not null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (7, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
    end if;
    if new.`name` is null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (7, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$grp$update$trial` after update on `database_of_the_fixture`.`grp` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"delete": null, "insert": 7, "update": 8}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (cast(convert(old.`idg` using utf8mb4) as binary) <=> cast(convert(new.`idg` using utf8mb4) as binary)) then
      if new.`name` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (7, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
      end if;
      if new.`name` is null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (7, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
      end if;
    else
      if not (cast(convert(old.`name` using utf8mb4) as binary) <=> cast(convert(new.`name` using utf8mb4) as binary)) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (8, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
      end if;
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$grp$update$trial`
/
create trigger `database_of_the_fixture`.`eventlog$grp$update` after update on `database_of_the_fixture`.`grp` for each row
begin
  declare mark longtext default 'eventlog track {"delete": null, "insert": 7, "update": 8}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (cast(convert(old.`idg` using utf8mb4) as binary) <=> cast(convert(new.`idg` using utf8mb4) as binary)) then
      if new.`name` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (7, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
      end if;
      if new.`name` is null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (7, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
      end if;
    else
      if not (cast(convert(old.`name` using utf8mb4) as binary) <=> cast(convert(new.`name` using utf8mb4) as binary)) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (8, who, 'grp', concat('idg=', case when convert(new.`idg` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`idg` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`idg` using utf8mb4) end), 'name', null, null);
      end if;
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$item$insert$trial` after insert on `database_of_the_fixture`.`item` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`price` is not null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', null, convert(new.`price` + 0 using utf8mb4));
    end if;
    if new.`price` is null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', null, null);
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$item$insert$trial`
/
create trigger `database_of_the_fixture`.`eventlog$item$insert` after insert on `database_of_the_fixture`.`item` for each row
begin
  declare mark longtext default 'eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`price` is not null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', null, convert(new.`price` + 0 using utf8mb4));
    end if;
    if new.`price` is null then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', null, null);
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$item$update$trial` after update on `database_of_the_fixture`.`item` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`a` <=> new.`a`) or not (cast(convert(old.`b` using utf8mb4) as binary) <=> cast(convert(new.`b` using utf8mb4) as binary)) then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (4, who, 'item', concat('a=', convert(old.`a` + 0 using utf8mb4), '+b=', case when convert(old.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`b` using utf8mb4) end));
      if new.`price` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', null, convert(new.`price` + 0 using utf8mb4));
      end if;
      if new.`price` is null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', null, null);
      end if;
    else
      if not (old.`price` <=> new.`price`) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (3, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', convert(old.`price` + 0 using utf8mb4), convert(new.`price` + 0 using utf8mb4));
      end if;
    end if;
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$item$update$trial`
/
create trigger `database_of_the_fixture`.`eventlog$item$update` after update on `database_of_the_fixture`.`item` for each row
begin
  declare mark longtext default 'eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`a` <=> new.`a`) or not (cast(convert(old.`b` using utf8mb4) as binary) <=> cast(convert(new.`b` using utf8mb4) as binary)) then
      insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (4, who, 'item', concat('a=', convert(old.`a` + 0 using utf8mb4), '+b=', case when convert(old.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`b` using utf8mb4) end));
      if new.`price` is not null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', null, convert(new.`price` + 0 using utf8mb4));
      end if;
      if new.`price` is null then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', null, null);
      end if;
    else
      if not (old.`price` <=> new.`price`) then
        insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (3, who, 'item', concat('a=', convert(new.`a` + 0 using utf8mb4), '+b=', case when convert(new.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`b` using utf8mb4) end), 'price', convert(old.`price` + 0 using utf8mb4), convert(new.`price` + 0 using utf8mb4));
      end if;
    end if;
  end if;
end
/
create trigger `database_of_the_fixture`.`eventlog$item$delete$trial` after delete on `database_of_the_fixture`.`item` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (4, who, 'item', concat('a=', convert(old.`a` + 0 using utf8mb4), '+b=', case when convert(old.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`b` using utf8mb4) end));
  end if;
end;
end if
/
drop trigger `database_of_the_fixture`.`eventlog$item$delete$trial`
/
create trigger `database_of_the_fixture`.`eventlog$item$delete` after delete on `database_of_the_fixture`.`item` for each row
begin
  declare mark longtext default 'eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `database_of_the_fixture`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `database_of_the_fixture`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (4, who, 'item', concat('a=', convert(old.`a` + 0 using utf8mb4), '+b=', case when convert(old.`b` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`b` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`b` using utf8mb4) end));
  end if;
end
/
create table `database_of_the_fixture`.`eventlog_applied` (
  source varchar(200) not null,
  state longtext,
  rounds numeric(19) not null,
  constraint `eventlog_applied_key` primary key (source)
) character set utf8mb4 collate utf8mb4_0900_bin
/
create table `database_of_the_fixture`.`eventlog_applied_marks` (
  source varchar(200) not null,
  mark varchar(200) not null,
  constraint `eventlog_applied_marks_key` primary key (source, mark)
) character set utf8mb4 collate utf8mb4_0900_bin
/
create table `database_of_the_fixture`.`eventlog_applied_refused` (
  source varchar(200) not null,
  mark varchar(200) not null,
  object_digest varchar(64) not null,
  place numeric(19) not null,
  tried numeric(19) not null,
  state varchar(10) not null,
  constraint `eventlog_applied_refused_key` primary key (source, mark, object_digest),
  constraint `eventlog_applied_refused_objects_key` unique (source, object_digest, mark)
) character set utf8mb4 collate utf8mb4_0900_bin
/
create table `database_of_the_fixture`.`eventlog_applied_ddl` (
  source varchar(200) not null,
  made_at timestamp not null,
  statement longtext not null
) character set utf8mb4 collate utf8mb4_0900_bin
/
create table `database_of_the_fixture`.`fish` (
  `id` INTEGER not null,
  `name` VARCHAR(20),
  constraint `fish_key` primary key (`id`)
) character set utf8mb4 collate utf8mb4_0900_bin
/
create table `database_of_the_fixture`.`pond` (
  `id` INTEGER not null,
  `name` VARCHAR(20),
  constraint `pond_key` primary key (`id`)
) character set utf8mb4 collate utf8mb4_0900_bin
/
insert into `compared` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (1, 'S', 1, timestamp '2026-11-30 23:45:55.827176', null, 'database_of_the_fixture.pet', 'idp=1', 'name', null, 'Rex I')
/
insert into `compared` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (2, 'S', 1, timestamp '2026-11-30 23:45:55.827176', null, 'database_of_the_fixture.pet', 'idp=2', 'name', null, 'Mimi')
/
insert into `compared_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (1, 1, 1, 2, timestamp '2026-11-30 23:45:56.057170', timestamp '2026-11-30 23:45:56.088480', '[["1-1",[["compared:1",[1],1000,"2fMgUxq+k8U"]]],["2-2",[["compared:2",[2],1000,"7uXDuSLrmuY"]]]]')
/
insert into `compared_known` (`object_table`, `key_hash`, `object_key`, `digest`, `row_values`, `next_digest`, `next_values`, `first_id`, `last_id`, `failed`) values ('database_of_the_fixture.pet', '1c62bc14ecd9ef26dc7f68bf6a71327d', 'idp=2', null, null, 'bd3f6dfdd6f648a82f023658ec13596b', '81c5f6dc1b486577{"name": "Mimi"}', 2, 2, 0)
/
insert into `compared_known` (`object_table`, `key_hash`, `object_key`, `digest`, `row_values`, `next_digest`, `next_values`, `first_id`, `last_id`, `failed`) values ('database_of_the_fixture.pet', '8752300b51abe210fd9e51c9e3c449b3', 'idp=1', null, null, '5da7b7014d136b317d9a66ab591e2508', '0010690ef871188b{"name": "Rex I"}', 1, 1, 0)
/
insert into `compared_known` (`object_table`, `key_hash`, `object_key`, `digest`, `row_values`, `next_digest`, `next_values`, `first_id`, `last_id`, `failed`) values ('database_of_the_fixture.pet', 'base', 'base', null, '{"format": 2, "objects": 2, "mark": null, "names": ["name"], "key": ["idp"], "stale": [], "unsure": false}', null, null, null, null, 0)
/
insert into `compared_notice` (`notice_id`, `noticed_at`, `username`, `kind`, `table_name`, `table_key`, `first_id`, `last_id`, `row_count`, `record_ids`, `event_id`, `answer`, `who`, `words`, `session_id`) values (1, timestamp '2026-11-30 23:45:55.234158', 'eventlog', 'publish', null, null, null, null, null, null, null, null, null, '{"document": "xds", "time_syntax": 1, "insert_query_back": "modify", "dialect": "mysql", "tables": [{"schema": "database_of_the_fixture", "name": "pet", "key": ["idp"], "view": false, "logged_as": null, "closed": false, "columns": [{"name": "idp", "type": "int", "kind": "INT", "published": "idp"}, {"name": "name", "type": "varchar(64)", "kind": "STRING", "published": "name"}]}]}', null)
/
insert into `compared_notice` (`notice_id`, `noticed_at`, `username`, `kind`, `table_name`, `table_key`, `first_id`, `last_id`, `row_count`, `record_ids`, `event_id`, `answer`, `who`, `words`, `session_id`) values (2, timestamp '2026-11-30 23:45:55.587661', 'eventlog', 'compare', 'database_of_the_fixture.pet', null, null, null, null, null, null, null, null, null, null)
/
insert into `compared_sent` (`record_id`) values (2)
/
insert into `compared_state` (`one`, `attached`, `association`, `epoch`, `leader`, `leader_session`, `leader_since`, `paused_at`, `paused_by`, `pause_reason`, `rested_at`, `cycle_at`, `cycle_facts`, `heartbeat_at`, `published_as`, `slot_facts`) values (1, 0, 'canonical', 1, 'vm, pid 29064', '174', timestamp '2026-11-30 23:45:55.013091', null, null, null, null, timestamp '2026-11-30 23:45:56.098633', '{"rows": 2, "finished": 2, "documents": 2, "events": 2, "refused": 0, "loopback": 0, "full": false, "paused": false, "stopped": false, "down": null, "outage": [], "wait": null, "unread": {}, "stopped_tables": [], "no_page": "", "seconds": 0.13712628700159257, "query_back": 5.9110025176778436e-06, "delivery": 0.014547610997396987, "delivery_wait": 0.011477500997396972, "answers": {}, "running": false, "worked": {"at": "2026-11-30 23:45:56.079229", "rows": 2, "finished": 2, "documents": 2, "events": 2, "refused": 0, "seconds": 0.13712628700159257, "delivery": 0.014547610997396987, "delivery_wait": 0.011477500997396972}, "down_since": null, "next_try": null, "remedy": null, "pace": 14.59, "slow_delivery": "", "finished_by_leader": 2, "course": [[1796082355.94, 2, 0, 0]]}', null, '{"values": {"sync_tables": "pet", "allow_loopback": true, "handle_future_events": false, "publication_mode": "compare"}, "tables": {}, "has_source": false}', null)
/
insert into `compared_version` (`version_num`) values ('0001')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (1, 'S', 1, timestamp '2026-11-30 23:45:21.642978', 'eventlog', 'usr', 'idu=1', 'fname', null, 'Jack')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (2, 'S', 1, timestamp '2026-11-30 23:45:21.642978', 'eventlog', 'usr', 'idu=1', 'lname', null, 'Frost')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (3, 'S', 1, timestamp '2026-11-30 23:45:21.855145', 'eventlog', 'usr', 'idu=2', 'fname', null, 'Jill')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (4, 'S', 1, timestamp '2026-11-30 23:45:21.855145', 'eventlog', 'usr', 'idu=2', 'lname', null, 'Frost')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (5, 'S', 1, timestamp '2026-11-30 23:45:22.097948', 'eventlog', 'usr', 'idu=3', 'fname', null, 'June')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (6, 'S', 1, timestamp '2026-11-30 23:45:22.097948', 'eventlog', 'usr', 'idu=3', 'lname', null, 'Frost')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (7, 'S', 1, timestamp '2026-11-30 23:45:22.331072', 'eventlog', 'usr', 'idu=4', 'fname', null, 'Joe')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (8, 'S', 1, timestamp '2026-11-30 23:45:22.331072', 'eventlog', 'usr', 'idu=4', 'lname', null, 'Frost')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (9, 'S', 1, timestamp '2026-11-30 23:45:22.575840', 'eventlog', 'usr', 'idu=5', 'fname', null, 'Jim')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (10, 'S', 1, timestamp '2026-11-30 23:45:22.575840', 'eventlog', 'usr', 'idu=5', 'lname', null, 'Frost')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (11, 'S', 1, timestamp '2026-11-30 23:45:22.848862', 'eventlog', 'usr', 'idu=6', 'fname', null, 'Jane')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (12, 'S', 1, timestamp '2026-11-30 23:45:22.848862', 'eventlog', 'usr', 'idu=6', 'lname', null, 'Frost')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (13, 'S', 1, timestamp '2026-11-30 23:45:23.091108', 'eventlog', 'usr', 'idu=7', 'fname', null, 'Joy')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (14, 'S', 1, timestamp '2026-11-30 23:45:23.091108', 'eventlog', 'usr', 'idu=7', 'lname', null, 'Frost')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (15, 'W', 2, timestamp '2026-11-30 23:45:25.990798', 'eventlog', 'usr', 'idu=1', 'fname', 'Jack', 'changed')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (16, 'E', 2, timestamp '2026-11-30 23:45:28.255276', 'eventlog', 'usr', 'idu=2', 'fname', 'Jill', 'changed')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (17, 'F', 2, timestamp '2026-11-30 23:45:30.827535', 'eventlog', 'usr', 'idu=7', 'fname', 'Joy', 'changed')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (18, 'N', 2, timestamp '2026-11-30 23:45:33.190119', 'eventlog', 'usr', 'idu=3', 'fname', 'June', 'changed')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (19, 'N', 2, timestamp '2026-11-30 23:45:35.954937', 'eventlog', 'usr', 'idu=3', 'lname', 'Frost', 'held')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (20, 'W', 2, timestamp '2026-11-30 23:45:36.161920', 'eventlog', 'usr', 'idu=4', 'fname', 'Joe', 'changed')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (21, 'E', 6, timestamp '2026-11-30 23:45:40.818620', null, 'usr', 'nonsense', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (22, 'E', 12, timestamp '2026-11-30 23:45:40.818620', null, 'usr', 'idu=5', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (23, 'S', 5, timestamp '2026-11-30 23:45:45.053123', 'eventlog', 'dept', 'idd=1', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (24, 'S', 5, timestamp '2026-11-30 23:45:45.305188', 'eventlog', 'dept', 'idd=2', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (25, 'S', 5, timestamp '2026-11-30 23:45:45.515966', 'eventlog', 'dept', 'idd=3', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (26, 'S', 5, timestamp '2026-11-30 23:45:45.788593', 'eventlog', 'dept', 'idd=4', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (27, 'S', 5, timestamp '2026-11-30 23:45:46.073810', 'eventlog', 'dept', 'idd=5', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (28, 'N', 5, timestamp '2026-11-30 23:45:50.130568', null, 'dept', 'idd=1', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (29, 'N', 5, timestamp '2026-11-30 23:45:50.130568', null, 'dept', 'idd=2', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (30, 'N', 2, timestamp '2026-11-30 23:45:50.420503', 'eventlog', 'usr', 'idu=5', 'fname', 'Jim', 'changed')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (31, 'N', 1, timestamp '2026-11-30 23:45:53.718911', null, 'usr', 'idu=1', 'fname', null, 'a')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (32, 'N', 2, timestamp '2026-11-30 23:45:53.723931', null, 'usr', 'idu=1', 'fname', 'a', 'b')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (33, 'N', 3, timestamp '2026-11-30 23:45:53.723931', null, 'usr', 'idu=1', 'fname', 'b', 'it''s \\ one')
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (34, 'N', 4, timestamp '2026-11-30 23:45:53.725281', null, 'usr', 'idu=6', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (35, 'N', 5, timestamp '2026-11-30 23:45:53.725281', null, 'usr', 'idu=1', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (36, 'N', 6, timestamp '2026-11-30 23:45:53.725281', null, 'usr', 'idu=2', null, null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (37, 'N', 7, timestamp '2026-11-30 23:45:53.730203', null, 'usr', 'idu=1', 'lname', null, null)
/
insert into `eventlog` (`record_id`, `status`, `event_type`, `event_time`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`) values (38, 'N', 8, timestamp '2026-11-30 23:45:53.730203', null, 'usr', 'idu=1', 'lname', null, null)
/
insert into `eventlog_answer` (`batch`, `part`, `answer`, `words`, `answered_at`) values (2, 1, 'warning', 'taken, but', timestamp '2026-11-30 23:45:28.122026')
/
insert into `eventlog_answer` (`batch`, `part`, `answer`, `words`, `answered_at`) values (4, 1, 'error', 'no eventlog:16', timestamp '2026-11-30 23:45:30.695111')
/
insert into `eventlog_answer` (`batch`, `part`, `answer`, `words`, `answered_at`) values (5, 1, 'fatal', 'the receiver shuts down', timestamp '2026-11-30 23:45:32.939808')
/
insert into `eventlog_answer` (`batch`, `part`, `answer`, `words`, `answered_at`) values (6, 1, 'retry', 'the receiver answered retry', timestamp '2026-11-30 23:45:35.713667')
/
insert into `eventlog_answer` (`batch`, `part`, `answer`, `words`, `answered_at`) values (7, 1, 'error', 'no eventlog:20', timestamp '2026-11-30 23:45:39.423623')
/
insert into `eventlog_applied` (`source`, `state`, `rounds`) values ('qlik-table', '{"version": 1, "by": "stream", "read": "{\\"since\\": \\"\\", \\"tables\\": {\\"fish\\": [\\"2023111422134099\\", \\"20231114221441000000000000000000011\\", [\\"20231114221440000000000000000000008BU\\", \\"20231114221441000000000000000000011I\\"]], \\"pond\\": [\\"2023111422134099\\", \\"20231114221441000000000000000000010\\", [\\"20231114221440000000000000000000009D\\", \\"20231114221441000000000000000000010BU\\"]]}, \\"loaded\\": {}}", "changed": [[null, "fish"], [null, "pond"]], "loading": []}', 1)
/
insert into `eventlog_applied_ddl` (`source`, `made_at`, `statement`) values ('qlik-table', timestamp '2026-11-30 23:45:21', 'create table `database_of_the_fixture`.`fish` (
  `id` INTEGER not null,
  `name` VARCHAR(20),
  constraint `fish_key` primary key (`id`)
) character set utf8mb4 collate utf8mb4_0900_bin')
/
insert into `eventlog_applied_ddl` (`source`, `made_at`, `statement`) values ('qlik-table', timestamp '2026-11-30 23:45:21', 'create table `database_of_the_fixture`.`pond` (
  `id` INTEGER not null,
  `name` VARCHAR(20),
  constraint `pond_key` primary key (`id`)
) character set utf8mb4 collate utf8mb4_0900_bin')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (1, 1, 1, 14, timestamp '2026-11-30 23:45:25.526135', timestamp '2026-11-30 23:45:25.737202', '[["1-2",[["eventlog:1-2:17f8af97",[1,2],1000,"KRnwW2Jo4j4"]]],["3-4",[["eventlog:3-4:5cc3ec01",[3,4],1000,"/DqrviuCrSQ"]]],["5-6",[["eventlog:5-6:e96f71a6",[5,6],1000,"XW6zSpll7ug"]]],["7-8",[["eventlog:7-8:294a6563",[7,8],1000,"VuFfybLQyvM"]]],["9-10",[["eventlog:9-10:69c37d73",[9,10],1000,"a4brltkIVA0"]]],["11-12",[["eventlog:11-12:97083d1d",[11,12],1000,"aefvGjN2yIU"]]],["13-14",[["eventlog:13-14:858d37b5",[13,14],1000,"y8wPgIfJKeI"]]]]')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (2, 2, 15, 15, timestamp '2026-11-30 23:45:27.945288', timestamp '2026-11-30 23:45:28.123870', '[["15-15",[["eventlog:15",[15],1000,"OCwOwFyvyXE"]]]]')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (3, 2, 15, 15, timestamp '2026-11-30 23:45:28.124223', timestamp '2026-11-30 23:45:28.124494', '[["warned",[{"log":"warned","max_changes":0,"sizes":[],"ranges":[15,1]}]]]')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (4, 3, 16, 16, timestamp '2026-11-30 23:45:30.511737', timestamp '2026-11-30 23:45:30.698041', '[["16-16",[["eventlog:16",[16],1000,"s+hctzKIrMw"]]]]')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (5, 4, 17, 17, timestamp '2026-11-30 23:45:32.782443', timestamp '2026-11-30 23:45:32.941080', '[["17-17",[["eventlog:17",[17],1000,"so5Ta2wfwAs"]]]]')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (6, 5, 18, 18, timestamp '2026-11-30 23:45:35.476344', timestamp '2026-11-30 23:45:35.727432', '[["18-18",[["eventlog:18",[18],1000,"Zvc5fqdANYY"]]]]')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (7, 6, 20, 20, timestamp '2026-11-30 23:45:39.137147', timestamp '2026-11-30 23:45:39.434617', '[["20-20",[["eventlog:20",[20],1000,"Me83WVNr/6o"]]]]')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (8, 7, 21, 22, timestamp '2026-11-30 23:45:44.853129', timestamp '2026-11-30 23:45:44.853832', '[["refused",[{"log":"refused","max_changes":0,"sizes":[],"ranges":[21,2]}]]]')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (9, 8, 23, 27, timestamp '2026-11-30 23:45:48.937172', timestamp '2026-11-30 23:45:49.177855', '[["23-23",[["eventlog:23",[23],1000,"XAPAW4kqkew"]]],["24-24",[["eventlog:24",[24],1000,"5WJUykCAAgM"]]],["25-25",[["eventlog:25",[25],1000,"ahBjbNPRcyw"]]],["26-26",[["eventlog:26",[26],1000,"yjt5L/spHPs"]]],["27-27",[["eventlog:27",[27],1000,"1I4UTabIgpE"]]]]')
/
insert into `eventlog_batch` (`batch`, `epoch`, `first_id`, `last_id`, `remembered_at`, `settled_at`, `content`) values (10, 9, 28, 30, timestamp '2026-11-30 23:45:53.448816', null, '[["28-28",[["eventlog:28",[28],1000,"F8FMH4dKIfQ"]]],["29-29",[["eventlog:29",[29],1000,"JqxWKyoOWH0"]]],["30-30",[["eventlog:30",[30],1000,"6XdFlW4I0rk"]]]]')
/
insert into `eventlog_failed` (`record_id`, `event_id`, `reason`, `document`, `tries`, `failed_at`) values (16, 'eventlog:16', 'no eventlog:16', '<nds dtdversion="4.0"><source><product version="0.1.0">eventlog</product><contact>eventlog</contact></source><input><modify class-name="usr" event-id="eventlog:16"><association>idu=2,table=usr,schema=database_of_the_fixture</association><modify-attr attr-name="fname"><remove-value><value type="string">Jill</value></remove-value><add-value><value type="string">changed</value></add-value></modify-attr></modify></input></nds>', 1, timestamp '2026-11-30 23:45:30.687774')
/
insert into `eventlog_failed` (`record_id`, `event_id`, `reason`, `document`, `tries`, `failed_at`) values (17, 'eventlog:17', 'the receiver shuts down', '<nds dtdversion="4.0"><source><product version="0.1.0">eventlog</product><contact>eventlog</contact></source><input><modify class-name="usr" event-id="eventlog:17"><association>idu=7,table=usr,schema=database_of_the_fixture</association><modify-attr attr-name="fname"><remove-value><value type="string">Joy</value></remove-value><add-value><value type="string">changed</value></add-value></modify-attr></modify></input></nds>', 1, timestamp '2026-11-30 23:45:32.938178')
/
insert into `eventlog_failed` (`record_id`, `event_id`, `reason`, `document`, `tries`, `failed_at`) values (21, null, 'malformed key: at character 9, expected ''='' after the column name', null, 1, timestamp '2026-11-30 23:45:44.848533')
/
insert into `eventlog_failed` (`record_id`, `event_id`, `reason`, `document`, `tries`, `failed_at`) values (22, null, 'event_type is 12, not 1 to 8', null, 1, timestamp '2026-11-30 23:45:44.848533')
/
insert into `eventlog_held` (`object_hash`, `spelling_hash`, `table_name`, `table_key`) values ('79603cb1610edc6eb79065b9f76eda9c20d9c51350bf823fde43933d61b96e45', '79603cb1610edc6eb79065b9f76eda9c20d9c51350bf823fde43933d61b96e45', 'usr', 'idu=3')
/
insert into `eventlog_notice` (`notice_id`, `noticed_at`, `username`, `kind`, `table_name`, `table_key`, `first_id`, `last_id`, `row_count`, `record_ids`, `event_id`, `answer`, `who`, `words`, `session_id`) values (1, timestamp '2026-11-30 23:45:40.442333', 'eventlog', 'skip', 'usr', 'idu=4', 20, 20, 1, '[20]', 'eventlog:20', 'E', 'ada', 'given up', null)
/
insert into `eventlog_notice` (`notice_id`, `noticed_at`, `username`, `kind`, `table_name`, `table_key`, `first_id`, `last_id`, `row_count`, `record_ids`, `event_id`, `answer`, `who`, `words`, `session_id`) values (2, timestamp '2026-11-30 23:45:49.612019', 'eventlog', 'resync', 'database_of_the_fixture.dept', null, null, null, null, null, null, null, null, 'are being logged, as event type 5', null)
/
insert into `eventlog_notice` (`notice_id`, `noticed_at`, `username`, `kind`, `table_name`, `table_key`, `first_id`, `last_id`, `row_count`, `record_ids`, `event_id`, `answer`, `who`, `words`, `session_id`) values (3, timestamp '2026-11-30 23:45:56.807512', 'eventlog', 'pause', null, null, null, null, null, null, null, null, 'ada', 'an upgrade', null)
/
insert into `eventlog_resync` (`table_name`, `choice`, `last_key`, `rows_logged`) values ('database_of_the_fixture.dept', '[5, null]', '[["int", 2]]', 2)
/
insert into `eventlog_retry` (`object_hash`, `first_id`, `event_id`, `object_table`, `object_key`, `record_ids`, `max_changes`, `tries`, `next_at`, `reason`) values ('79603cb1610edc6eb79065b9f76eda9c20d9c51350bf823fde43933d61b96e45', 18, 'eventlog:18', 'usr', 'idu=3', '[18]', 1000, 1, timestamp '2026-11-30 23:45:57.210603', 'the receiver answered retry')
/
insert into `eventlog_sent` (`record_id`) values (30)
/
insert into `eventlog_state` (`one`, `attached`, `association`, `epoch`, `leader`, `leader_session`, `leader_since`, `paused_at`, `paused_by`, `pause_reason`, `rested_at`, `cycle_at`, `cycle_facts`, `heartbeat_at`, `published_as`, `slot_facts`) values (1, 0, 'canonical', 9, 'test', '160', timestamp '2026-11-30 23:45:50.882905', timestamp '2026-11-30 23:45:56.805791', 'ada', 'an upgrade', null, null, null, null, null, null)
/
insert into `eventlog_tracked` (`schema_name`, `table_name`, `of_schema`, `of_table`, `logged_as`, `table_id`, `table_owner`, `choice`, `tracked_at`, `tracked_by`) values ('database_of_the_fixture', 'dept', 'database_of_the_fixture', 'dept', 'dept', null, null, '{"without": ["photo"]}', timestamp '2026-11-30 23:45:18.696963', 'eventlog')
/
insert into `eventlog_tracked` (`schema_name`, `table_name`, `of_schema`, `of_table`, `logged_as`, `table_id`, `table_owner`, `choice`, `tracked_at`, `tracked_by`) values ('database_of_the_fixture', 'grp', 'database_of_the_fixture', 'grp', 'grp', null, null, '{"delete": null, "insert": 7, "update": 8}', timestamp '2026-11-30 23:45:19.488357', 'eventlog')
/
insert into `eventlog_tracked` (`schema_name`, `table_name`, `of_schema`, `of_table`, `logged_as`, `table_id`, `table_owner`, `choice`, `tracked_at`, `tracked_by`) values ('database_of_the_fixture', 'item', 'database_of_the_fixture', 'item', 'item', null, null, '{"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}', timestamp '2026-11-30 23:45:20.335042', 'eventlog')
/
insert into `eventlog_tracked` (`schema_name`, `table_name`, `of_schema`, `of_table`, `logged_as`, `table_id`, `table_owner`, `choice`, `tracked_at`, `tracked_by`) values ('database_of_the_fixture', 'usr', 'database_of_the_fixture', 'usr', 'usr', null, null, '{"insert": 1, "update": 2}', timestamp '2026-11-30 23:45:17.704076', 'eventlog')
/
insert into `eventlog_tracked` (`schema_name`, `table_name`, `of_schema`, `of_table`, `logged_as`, `table_id`, `table_owner`, `choice`, `tracked_at`, `tracked_by`) values ('database_of_the_fixture', 'usr_phone', 'database_of_the_fixture', 'usr', null, null, null, '["n"]', timestamp '2026-11-30 23:45:17.704920', 'eventlog')
/
insert into `eventlog_try` (`record_id`, `try_number`, `event_id`, `batch`, `part`) values (15, 1, 'eventlog:15', 2, 1)
/
insert into `eventlog_try` (`record_id`, `try_number`, `event_id`, `batch`, `part`) values (16, 1, 'eventlog:16', 4, 1)
/
insert into `eventlog_try` (`record_id`, `try_number`, `event_id`, `batch`, `part`) values (17, 1, 'eventlog:17', 5, 1)
/
insert into `eventlog_try` (`record_id`, `try_number`, `event_id`, `batch`, `part`) values (18, 1, 'eventlog:18', 6, 1)
/
insert into `eventlog_try` (`record_id`, `try_number`, `event_id`, `batch`, `part`) values (20, 1, 'eventlog:20', 7, 1)
/
insert into `eventlog_version` (`version_num`) values ('0001')
/
insert into `fish` (`id`, `name`) values (1, 'c')
/
insert into `fish` (`id`, `name`) values (2, 'again')
/
insert into `pond` (`id`, `name`) values (2, 'b')
/
insert into `slotted_state` (`one`, `attached`, `association`, `epoch`, `leader`, `leader_session`, `leader_since`, `paused_at`, `paused_by`, `pause_reason`, `rested_at`, `cycle_at`, `cycle_facts`, `heartbeat_at`, `published_as`, `slot_facts`) values (1, 0, 'canonical', 0, null, null, null, null, null, null, null, null, null, null, null, null)
/
insert into `slotted_version` (`version_num`) values ('0001')
/
