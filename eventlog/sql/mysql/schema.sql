-- first_state --
-- Writes the one row of the state, unless it is there.
insert ignore into {state} (one, attached, association, epoch) values (1, {attached}, '{association}', 0)

-- create_log --
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
){table_end}

-- create_pending --
-- Makes the index of pending rows.
create index if not exists {log_pending} on {log} ({indexed_status}, {record_id})

-- create_tracked --
-- Makes the record of what is tracked.
create table if not exists {tracked} (
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
  constraint {tracked_key} primary key (schema_name, table_name, of_schema, of_table)
){table_end}

-- create_known --
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
){table_end}

-- future --
-- Makes the index of future events.
create index if not exists {log_future} on {log} ({indexed_status}, {event_time}, {record_id})

-- default_record_id --
-- Gives record_id its default in a log that has none.
alter table {log} modify column {record_id} bigint not null auto_increment

-- default_status --
-- Gives status its default in a log that has none.
alter table {log} alter column {status} set default 'N'

-- default_event_time --
-- Gives event_time its default in a log that has none.
alter table {log} alter column {event_time} set default (utc_timestamp(6))
