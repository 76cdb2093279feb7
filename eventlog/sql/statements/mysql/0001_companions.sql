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
