create table if not exists `eventlog_state` (
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
  constraint `eventlog_state_key` primary key (one),
  constraint `eventlog_state_one` check (one = 1)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

insert ignore into `eventlog_state` (one, attached, epoch) values (1, 0, 0);

create table if not exists `eventlog_batch` (
  batch bigint not null,
  epoch bigint not null,
  remembered_at datetime(6) not null default (utc_timestamp(6)),
  content longtext not null,
  constraint `eventlog_batch_key` primary key (batch)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

create table if not exists `eventlog_waiting` (
  object_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key
  event_id text not null,
  table_name text not null,
  table_key longtext not null,
  record_ids longtext not null,
  tries integer not null,
  next_at datetime(6) not null,
  reason longtext not null,
  constraint `eventlog_waiting_key` primary key (object_hash)
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
  kind text not null, -- capture off, skip, purge
  table_name text,
  words longtext,
  constraint `eventlog_notice_key` primary key (notice_id)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

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

create table if not exists `eventlog_tracked` (
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
  constraint `eventlog_tracked_key` primary key (schema_name, table_name, of_schema, of_table)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

alter table `eventlog_state` add column if not exists leader_session text;

alter table `eventlog_state` add column if not exists highest_id bigint;

alter table `eventlog_state` add column if not exists association varchar(9);

update `eventlog_state` set association = 'canonical' where association is null;

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
  object_hash char(64) not null, -- of an object of which events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key longtext not null,
  constraint `eventlog_held_key` primary key (object_hash, spelling_hash)
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

-- what waited before, one event of an object: it is gone where this script is run again
create table if not exists `eventlog_waiting` (
  object_hash char(64) not null,
  event_id text not null,
  table_name text not null,
  table_key longtext not null,
  record_ids longtext not null,
  tries integer not null,
  next_at datetime(6) not null,
  reason longtext not null
) engine = InnoDB character set utf8mb4 collate utf8mb4_nopad_bin;

insert into `eventlog_retry` (
  object_hash, first_id, event_id, object_table, object_key, record_ids, max_changes, tries, next_at, reason)
select w.object_hash, 0, w.event_id, w.table_name, w.table_key, w.record_ids, 1000, w.tries, w.next_at, w.reason
from `eventlog_waiting` w
where not exists (select null from `eventlog_retry` r where r.object_hash = w.object_hash);

insert into `eventlog_held` (spelling_hash, object_hash, table_name, table_key)
select w.object_hash, w.object_hash, w.table_name, w.table_key
from `eventlog_waiting` w
where not exists (select null from `eventlog_held` h where h.object_hash = w.object_hash);

drop table `eventlog_waiting`;

create table if not exists `eventlog_version` (
  version_num varchar(32) not null,
  constraint `eventlog_version_pkc` primary key (version_num)
);

insert into `eventlog_version` (version_num)
select '0004' from (select count(*) as installed from `eventlog_version`) as v where installed = 0;

update `eventlog_version` set version_num = '0004' where version_num < '0004';

create index if not exists `eventlog_future` on `eventlog` (`status`, `event_time`, `record_id`);

