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
insert into "usr" ("idu", "fname", "lname") overriding system value values (1, 'changed', 'Frost')
/
insert into "usr" ("idu", "fname", "lname") overriding system value values (2, 'changed', 'Frost')
/
insert into "usr" ("idu", "fname", "lname") overriding system value values (3, 'changed', 'held')
/
insert into "usr" ("idu", "fname", "lname") overriding system value values (4, 'changed', 'Frost')
/
insert into "usr" ("idu", "fname", "lname") overriding system value values (5, 'changed', 'Frost')
/
insert into "usr" ("idu", "fname", "lname") overriding system value values (6, 'Jane', 'Frost')
/
insert into "usr" ("idu", "fname", "lname") overriding system value values (7, 'changed', 'Frost')
/
insert into "dept" ("idd", "name", "photo") overriding system value values (1, 'd1', 'p')
/
insert into "dept" ("idd", "name", "photo") overriding system value values (2, 'd2', 'p')
/
insert into "dept" ("idd", "name", "photo") overriding system value values (3, 'd3', 'p')
/
insert into "dept" ("idd", "name", "photo") overriding system value values (4, 'd4', 'p')
/
insert into "dept" ("idd", "name", "photo") overriding system value values (5, 'd5', 'p')
/
insert into "pet" ("idp", "name") overriding system value values (1, 'Rex I')
/
insert into "pet" ("idp", "name") overriding system value values (2, 'Mimi')
/
CREATE TABLE eventlog_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT eventlog_version_pkc PRIMARY KEY (version_num)
)
/
create table if not exists "eventlog_state" (
  one smallint not null,
  attached smallint not null,
  association text,
  epoch bigint not null,
  leader text,
  leader_session text,
  leader_since timestamp(6),
  paused_at timestamp(6),
  paused_by text,
  pause_reason text,
  rested_at timestamp(6), -- when the publisher began to rest in this pause, null before
  cycle_at timestamp(6),
  cycle_facts text,
  heartbeat_at timestamp(6),
  published_as text, -- the settings of the last leader
  slot_facts text, -- of the replication slot that fills the log, null: something else does
  constraint "eventlog_state_key" primary key (one),
  constraint "eventlog_state_one" check (one = 1)
)
/
create table if not exists "eventlog_batch" (
  batch bigint not null,
  epoch bigint not null,
  first_id bigint not null, -- no row of it is lower
  last_id bigint not null,
  remembered_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  settled_at timestamp(6), -- when its rows were finished, null before
  content text not null,
  constraint "eventlog_batch_key" primary key (batch)
)
/
create table if not exists "eventlog_retry" (
  object_hash char(64) not null, -- SHA-256 of object_table, a zero byte, object_key
  first_id bigint not null, -- the first row of the event
  event_id text not null,
  object_table text not null, -- the one name of the object
  object_key text not null,
  record_ids text not null,
  max_changes integer not null, -- after how many values removed or added the event was cut
  tries integer not null,
  next_at timestamp(6) not null,
  reason text not null,
  constraint "eventlog_retry_key" primary key (object_hash, first_id)
)
/
create table if not exists "eventlog_held" (
  object_hash char(64) not null, -- of an object whose events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key text not null,
  constraint "eventlog_held_key" primary key (object_hash, spelling_hash)
)
/
create table if not exists "eventlog_failed" (
  record_id bigint not null,
  event_id text,
  reason text not null,
  document text,
  tries integer not null,
  failed_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  constraint "eventlog_failed_key" primary key (record_id)
)
/
create table if not exists "eventlog_answer" (
  batch bigint not null, -- that had the documents; below 0: people redrove or skipped what had failed
  part integer not null, -- of what was answered to them, equal answers once
  answer text not null, -- success, warning, retry, error, fatal, or refused
  words text,
  answered_at timestamp(6) not null,
  constraint "eventlog_answer_key" primary key (batch, part)
)
/
create table if not exists "eventlog_try" (
  record_id bigint not null,
  try_number integer not null, -- of the row, from 1; a first success is none
  event_id text, -- null: no event could be made of the row
  batch bigint not null,
  part integer not null,
  constraint "eventlog_try_key" primary key (record_id, try_number),
  constraint "eventlog_try_way" unique (batch, part, record_id)
)
/
create table if not exists "eventlog_sent" (
  record_id bigint not null, -- the highest that went out
  constraint "eventlog_sent_key" primary key (record_id)
)
/
create table if not exists "eventlog_resync" (
  table_name text not null,
  choice text not null,
  last_key text, -- null before the first chunk
  rows_logged bigint not null,
  constraint "eventlog_resync_key" primary key (table_name)
)
/
create table if not exists "eventlog_notice" (
  notice_id bigint generated by default as identity,
  noticed_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  username text not null default session_user,
  -- what happened: `eventlog history` shows each kind
  kind text not null,
  table_name text, -- of the only table
  table_key text, -- of the only object
  first_id bigint, -- no row of it is lower
  last_id bigint,
  row_count bigint,
  record_ids text, -- as JSON, if rows are listed
  event_id text, -- of the only event
  answer text, -- the letters that the rows had
  who text, -- the person, null: only username is on record
  words text, -- the reason, or what no column has
  session_id bigint, -- in which capture was switched off
  constraint "eventlog_notice_key" primary key (notice_id)
)
/
create table if not exists "eventlog_slot" (
  lsn bigint not null, -- the end of the last transaction
  committed_at timestamp(6), -- when it was committed; null: nothing of it was logged
  noted_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  constraint "eventlog_slot_key" primary key (lsn)
)
/
create table if not exists "eventlog_tracked" (
  schema_name text not null,
  table_name text not null,
  of_schema text not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table text not null,
  logged_as text, -- the table_name of its rows, which stays its own for ever, null for a child
  table_id text, -- by which a table that was made anew is recognised
  table_owner text,
  choice text, -- what of it is logged, null: nothing any more
  tracked_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  tracked_by text not null default session_user,
  constraint "eventlog_tracked_key" primary key (schema_name, table_name, of_schema, of_table)
)
/
create table if not exists "eventlog_known" (
  object_table text not null,
  key_hash char(32) not null, -- the digest of object_key; `base` in the row that counts the table's objects
  object_key text not null,
  digest char(32), -- of the values that the receiver has; null: it has none
  row_values text, -- these values as JSON, unless only digests are kept
  next_digest char(32), -- to which the event on its way leads; null: to none
  next_values text,
  first_id bigint, -- the first and the last row of the event that is on its way or failed
  last_id bigint,
  failed smallint not null default 0,
  constraint "eventlog_known_key" primary key (object_table, key_hash)
)
/
create index if not exists "eventlog_known_way" on "eventlog_known" (first_id) where first_id is not null
/
create table if not exists "eventlog" (
  "record_id" bigint not null generated always as identity (cache 1),
  "status" char(1) not null default 'N',
  "event_type" integer not null,
  "event_time" timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  "perpetrator" text default session_user,
  "table_name" text not null,
  "table_key" text not null,
  "column_name" text,
  "old_value" text,
  "new_value" text,
  constraint "eventlog_key" primary key ("record_id")
) with (
  autovacuum_vacuum_scale_factor = 0.02, -- every row is updated or deleted once
  autovacuum_analyze_scale_factor = 0.02
)
/
create index if not exists "eventlog_pending" on "eventlog" ("record_id") where "status" = 'N'
/
create index if not exists "eventlog_future" on "eventlog" ("event_time", "record_id") where "status" = 'N'
/
CREATE TABLE compared_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT compared_version_pkc PRIMARY KEY (version_num)
)
/
create table if not exists "compared_state" (
  one smallint not null,
  attached smallint not null,
  association text,
  epoch bigint not null,
  leader text,
  leader_session text,
  leader_since timestamp(6),
  paused_at timestamp(6),
  paused_by text,
  pause_reason text,
  rested_at timestamp(6), -- when the publisher began to rest in this pause, null before
  cycle_at timestamp(6),
  cycle_facts text,
  heartbeat_at timestamp(6),
  published_as text, -- the settings of the last leader
  slot_facts text, -- of the replication slot that fills the log, null: something else does
  constraint "compared_state_key" primary key (one),
  constraint "compared_state_one" check (one = 1)
)
/
create table if not exists "compared_batch" (
  batch bigint not null,
  epoch bigint not null,
  first_id bigint not null, -- no row of it is lower
  last_id bigint not null,
  remembered_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  settled_at timestamp(6), -- when its rows were finished, null before
  content text not null,
  constraint "compared_batch_key" primary key (batch)
)
/
create table if not exists "compared_retry" (
  object_hash char(64) not null, -- SHA-256 of object_table, a zero byte, object_key
  first_id bigint not null, -- the first row of the event
  event_id text not null,
  object_table text not null, -- the one name of the object
  object_key text not null,
  record_ids text not null,
  max_changes integer not null, -- after how many values removed or added the event was cut
  tries integer not null,
  next_at timestamp(6) not null,
  reason text not null,
  constraint "compared_retry_key" primary key (object_hash, first_id)
)
/
create table if not exists "compared_held" (
  object_hash char(64) not null, -- of an object whose events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key text not null,
  constraint "compared_held_key" primary key (object_hash, spelling_hash)
)
/
create table if not exists "compared_failed" (
  record_id bigint not null,
  event_id text,
  reason text not null,
  document text,
  tries integer not null,
  failed_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  constraint "compared_failed_key" primary key (record_id)
)
/
create table if not exists "compared_answer" (
  batch bigint not null, -- that had the documents; below 0: people redrove or skipped what had failed
  part integer not null, -- of what was answered to them, equal answers once
  answer text not null, -- success, warning, retry, error, fatal, or refused
  words text,
  answered_at timestamp(6) not null,
  constraint "compared_answer_key" primary key (batch, part)
)
/
create table if not exists "compared_try" (
  record_id bigint not null,
  try_number integer not null, -- of the row, from 1; a first success is none
  event_id text, -- null: no event could be made of the row
  batch bigint not null,
  part integer not null,
  constraint "compared_try_key" primary key (record_id, try_number),
  constraint "compared_try_way" unique (batch, part, record_id)
)
/
create table if not exists "compared_sent" (
  record_id bigint not null, -- the highest that went out
  constraint "compared_sent_key" primary key (record_id)
)
/
create table if not exists "compared_resync" (
  table_name text not null,
  choice text not null,
  last_key text, -- null before the first chunk
  rows_logged bigint not null,
  constraint "compared_resync_key" primary key (table_name)
)
/
create table if not exists "compared_notice" (
  notice_id bigint generated by default as identity,
  noticed_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  username text not null default session_user,
  -- what happened: `eventlog history` shows each kind
  kind text not null,
  table_name text, -- of the only table
  table_key text, -- of the only object
  first_id bigint, -- no row of it is lower
  last_id bigint,
  row_count bigint,
  record_ids text, -- as JSON, if rows are listed
  event_id text, -- of the only event
  answer text, -- the letters that the rows had
  who text, -- the person, null: only username is on record
  words text, -- the reason, or what no column has
  session_id bigint, -- in which capture was switched off
  constraint "compared_notice_key" primary key (notice_id)
)
/
create table if not exists "compared_slot" (
  lsn bigint not null, -- the end of the last transaction
  committed_at timestamp(6), -- when it was committed; null: nothing of it was logged
  noted_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  constraint "compared_slot_key" primary key (lsn)
)
/
create table if not exists "compared_tracked" (
  schema_name text not null,
  table_name text not null,
  of_schema text not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table text not null,
  logged_as text, -- the table_name of its rows, which stays its own for ever, null for a child
  table_id text, -- by which a table that was made anew is recognised
  table_owner text,
  choice text, -- what of it is logged, null: nothing any more
  tracked_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  tracked_by text not null default session_user,
  constraint "compared_tracked_key" primary key (schema_name, table_name, of_schema, of_table)
)
/
create table if not exists "compared_known" (
  object_table text not null,
  key_hash char(32) not null, -- the digest of object_key; `base` in the row that counts the table's objects
  object_key text not null,
  digest char(32), -- of the values that the receiver has; null: it has none
  row_values text, -- these values as JSON, unless only digests are kept
  next_digest char(32), -- to which the event on its way leads; null: to none
  next_values text,
  first_id bigint, -- the first and the last row of the event that is on its way or failed
  last_id bigint,
  failed smallint not null default 0,
  constraint "compared_known_key" primary key (object_table, key_hash)
)
/
create index if not exists "compared_known_way" on "compared_known" (first_id) where first_id is not null
/
create table if not exists "compared" (
  "record_id" bigint not null generated always as identity (cache 1),
  "status" char(1) not null default 'N',
  "event_type" integer not null,
  "event_time" timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  "perpetrator" text default session_user,
  "table_name" text not null,
  "table_key" text not null,
  "column_name" text,
  "old_value" text,
  "new_value" text,
  constraint "compared_key" primary key ("record_id")
) with (
  autovacuum_vacuum_scale_factor = 0.02, -- every row is updated or deleted once
  autovacuum_analyze_scale_factor = 0.02
)
/
create index if not exists "compared_pending" on "compared" ("record_id") where "status" = 'N'
/
create index if not exists "compared_future" on "compared" ("event_time", "record_id") where "status" = 'N'
/
CREATE TABLE slotted_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT slotted_version_pkc PRIMARY KEY (version_num)
)
/
create table if not exists "slotted_state" (
  one smallint not null,
  attached smallint not null,
  association text,
  epoch bigint not null,
  leader text,
  leader_session text,
  leader_since timestamp(6),
  paused_at timestamp(6),
  paused_by text,
  pause_reason text,
  rested_at timestamp(6), -- when the publisher began to rest in this pause, null before
  cycle_at timestamp(6),
  cycle_facts text,
  heartbeat_at timestamp(6),
  published_as text, -- the settings of the last leader
  slot_facts text, -- of the replication slot that fills the log, null: something else does
  constraint "slotted_state_key" primary key (one),
  constraint "slotted_state_one" check (one = 1)
)
/
create table if not exists "slotted_batch" (
  batch bigint not null,
  epoch bigint not null,
  first_id bigint not null, -- no row of it is lower
  last_id bigint not null,
  remembered_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  settled_at timestamp(6), -- when its rows were finished, null before
  content text not null,
  constraint "slotted_batch_key" primary key (batch)
)
/
create table if not exists "slotted_retry" (
  object_hash char(64) not null, -- SHA-256 of object_table, a zero byte, object_key
  first_id bigint not null, -- the first row of the event
  event_id text not null,
  object_table text not null, -- the one name of the object
  object_key text not null,
  record_ids text not null,
  max_changes integer not null, -- after how many values removed or added the event was cut
  tries integer not null,
  next_at timestamp(6) not null,
  reason text not null,
  constraint "slotted_retry_key" primary key (object_hash, first_id)
)
/
create table if not exists "slotted_held" (
  object_hash char(64) not null, -- of an object whose events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name text not null,
  table_key text not null,
  constraint "slotted_held_key" primary key (object_hash, spelling_hash)
)
/
create table if not exists "slotted_failed" (
  record_id bigint not null,
  event_id text,
  reason text not null,
  document text,
  tries integer not null,
  failed_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  constraint "slotted_failed_key" primary key (record_id)
)
/
create table if not exists "slotted_answer" (
  batch bigint not null, -- that had the documents; below 0: people redrove or skipped what had failed
  part integer not null, -- of what was answered to them, equal answers once
  answer text not null, -- success, warning, retry, error, fatal, or refused
  words text,
  answered_at timestamp(6) not null,
  constraint "slotted_answer_key" primary key (batch, part)
)
/
create table if not exists "slotted_try" (
  record_id bigint not null,
  try_number integer not null, -- of the row, from 1; a first success is none
  event_id text, -- null: no event could be made of the row
  batch bigint not null,
  part integer not null,
  constraint "slotted_try_key" primary key (record_id, try_number),
  constraint "slotted_try_way" unique (batch, part, record_id)
)
/
create table if not exists "slotted_sent" (
  record_id bigint not null, -- the highest that went out
  constraint "slotted_sent_key" primary key (record_id)
)
/
create table if not exists "slotted_resync" (
  table_name text not null,
  choice text not null,
  last_key text, -- null before the first chunk
  rows_logged bigint not null,
  constraint "slotted_resync_key" primary key (table_name)
)
/
create table if not exists "slotted_notice" (
  notice_id bigint generated by default as identity,
  noticed_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  username text not null default session_user,
  -- what happened: `eventlog history` shows each kind
  kind text not null,
  table_name text, -- of the only table
  table_key text, -- of the only object
  first_id bigint, -- no row of it is lower
  last_id bigint,
  row_count bigint,
  record_ids text, -- as JSON, if rows are listed
  event_id text, -- of the only event
  answer text, -- the letters that the rows had
  who text, -- the person, null: only username is on record
  words text, -- the reason, or what no column has
  session_id bigint, -- in which capture was switched off
  constraint "slotted_notice_key" primary key (notice_id)
)
/
create table if not exists "slotted_slot" (
  lsn bigint not null, -- the end of the last transaction
  committed_at timestamp(6), -- when it was committed; null: nothing of it was logged
  noted_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  constraint "slotted_slot_key" primary key (lsn)
)
/
create table if not exists "slotted_tracked" (
  schema_name text not null,
  table_name text not null,
  of_schema text not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table text not null,
  logged_as text, -- the table_name of its rows, which stays its own for ever, null for a child
  table_id text, -- by which a table that was made anew is recognised
  table_owner text,
  choice text, -- what of it is logged, null: nothing any more
  tracked_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  tracked_by text not null default session_user,
  constraint "slotted_tracked_key" primary key (schema_name, table_name, of_schema, of_table)
)
/
create table if not exists "slotted_known" (
  object_table text not null,
  key_hash char(32) not null, -- the digest of object_key; `base` in the row that counts the table's objects
  object_key text not null,
  digest char(32), -- of the values that the receiver has; null: it has none
  row_values text, -- these values as JSON, unless only digests are kept
  next_digest char(32), -- to which the event on its way leads; null: to none
  next_values text,
  first_id bigint, -- the first and the last row of the event that is on its way or failed
  last_id bigint,
  failed smallint not null default 0,
  constraint "slotted_known_key" primary key (object_table, key_hash)
)
/
create index if not exists "slotted_known_way" on "slotted_known" (first_id) where first_id is not null
/
create table if not exists "slotted" (
  "record_id" bigint not null generated always as identity (cache 1),
  "status" char(1) not null default 'N',
  "event_type" integer not null,
  "event_time" timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  "perpetrator" text default session_user,
  "table_name" text not null,
  "table_key" text not null,
  "column_name" text,
  "old_value" text,
  "new_value" text,
  constraint "slotted_key" primary key ("record_id")
) with (
  autovacuum_vacuum_scale_factor = 0.02, -- every row is updated or deleted once
  autovacuum_analyze_scale_factor = 0.02
)
/
create index if not exists "slotted_pending" on "slotted" ("record_id") where "status" = 'N'
/
create index if not exists "slotted_future" on "slotted" ("event_time", "record_id") where "status" = 'N'
/
create or replace function "public"."eventlog_event"(
  event_type integer,
  table_name text,
  table_key text,
  column_name text default null,
  old_value text default null,
  new_value text default null
) returns void
language sql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
values ($1, session_user, $2, $3, $4, $5, $6)
$eventlog$
/
create or replace function "public"."eventlog_key_value"(value text) returns text
language sql
immutable
set search_path to pg_catalog, pg_temp
as $eventlog$
select case when value operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(value, E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else value end from (select $1 collate pg_catalog."C") as given (value)
$eventlog$
/
create or replace function "public"."eventlog_capture_off"(reason text) returns void
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $eventlog$
declare
  noticed bigint;
begin
  insert into "public"."eventlog_notice" (username, kind, session_id, words)
  values (session_user, 'capture off', pg_backend_pid(), reason)
  returning notice_id into noticed;
  perform set_config('eventlog.capture', noticed::text, false);
end
$eventlog$
/
create or replace function "public"."eventlog_capture_on"() returns void
language sql
set search_path to pg_catalog, pg_temp
as $eventlog$
select set_config('eventlog.capture', '', false)
$eventlog$
/
create or replace function "public"."eventlog_capture_is_off"() returns boolean
language sql
stable
set search_path to pg_catalog, pg_temp
as $eventlog$
select exists (
  select from "public"."eventlog_notice" n
  where n.notice_id::text = current_setting('eventlog.capture', true)
    and n.kind = 'capture off'
    and n.username = session_user
    and n.session_id = pg_backend_pid()
    and n.words is not null
)
$eventlog$
/
alter function "public"."eventlog_event"(integer, text, text, text, text, text) owner to "eventlog"
/
alter function "public"."eventlog_key_value"(text) owner to "eventlog"
/
alter function "public"."eventlog_capture_off"(text) owner to "eventlog"
/
alter function "public"."eventlog_capture_on"() owner to "eventlog"
/
alter function "public"."eventlog_capture_is_off"() owner to "eventlog"
/
create or replace function "public"."eventlog$public$usr$insert"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"children": ["public.usr_phone.n"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from eventlog_new n
    cross join lateral (
      select 1 as event_type, 'fname'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."fname"::pg_catalog.text collate pg_catalog."C" as new_value
      where n."fname" is distinct from null
      union all
      select 1, 'lname'::pg_catalog.text, null::pg_catalog.text, n."lname"::pg_catalog.text collate pg_catalog."C"
      where n."lname" is distinct from null
      union all
      select 1, 'fname'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
      where n."fname" is not distinct from null and n."lname" is not distinct from null
    ) f;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$usr$insert"() owner to "eventlog"
/
create trigger "!eventlog_insert"
  after insert on "public"."usr"
  referencing new table as eventlog_new
  for each statement execute function "public"."eventlog$public$usr$insert"()
/
create or replace function "public"."eventlog$public$usr$update"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"children": ["public.usr_phone.n"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  if not exists (select from eventlog_new offset 1) then
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
    from eventlog_old o cross join eventlog_new n
      cross join lateral (
        select 2 as event_type, 'fname'::pg_catalog.text as column_name, o."fname"::pg_catalog.text collate pg_catalog."C" as old_value, n."fname"::pg_catalog.text collate pg_catalog."C" as new_value
        where o."fname" is distinct from n."fname" collate pg_catalog."C"
        union all
        select 2, 'lname'::pg_catalog.text, o."lname"::pg_catalog.text collate pg_catalog."C", n."lname"::pg_catalog.text collate pg_catalog."C"
        where o."lname" is distinct from n."lname" collate pg_catalog."C"
      ) f
      where (not (o."idu" is distinct from n."idu"));
    logged := logged or found;
    if not found then
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 4, session_user, 'usr', 'idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text
      from eventlog_old o cross join eventlog_new n
        where (o."idu" is distinct from n."idu");
      logged := logged or found;
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
      select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
      from eventlog_old o cross join eventlog_new n
        cross join lateral (
          select 1 as event_type, 'fname'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."fname"::pg_catalog.text collate pg_catalog."C" as new_value
          where n."fname" is distinct from null
          union all
          select 1, 'lname'::pg_catalog.text, null::pg_catalog.text, n."lname"::pg_catalog.text collate pg_catalog."C"
          where n."lname" is distinct from null
          union all
          select 1, 'fname'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
          where n."fname" is not distinct from null and n."lname" is not distinct from null
        ) f
        where (o."idu" is distinct from n."idu");
      logged := logged or found;
    end if;
  else
    if exists (select from (select x."idu", x."fname", x."lname", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."idu", x."fname", x."lname", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      where o."idu" is distinct from n."idu") then
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 4, session_user, 'usr', 'idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text
      from (select x."idu", x."fname", x."lname", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."idu", x."fname", x."lname", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        where (o."idu" is distinct from n."idu");
      logged := logged or found;
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
      select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
      from (select x."idu", x."fname", x."lname", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."idu", x."fname", x."lname", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        cross join lateral (
          select 1 as event_type, 'fname'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."fname"::pg_catalog.text collate pg_catalog."C" as new_value
          where n."fname" is distinct from null
          union all
          select 1, 'lname'::pg_catalog.text, null::pg_catalog.text, n."lname"::pg_catalog.text collate pg_catalog."C"
          where n."lname" is distinct from null
          union all
          select 1, 'fname'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
          where n."fname" is not distinct from null and n."lname" is not distinct from null
        ) f
        where (o."idu" is distinct from n."idu");
      logged := logged or found;
    end if;
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
    from (select x."idu", x."fname", x."lname", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."idu", x."fname", x."lname", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      cross join lateral (
        select 2 as event_type, 'fname'::pg_catalog.text as column_name, o."fname"::pg_catalog.text collate pg_catalog."C" as old_value, n."fname"::pg_catalog.text collate pg_catalog."C" as new_value
        where o."fname" is distinct from n."fname" collate pg_catalog."C"
        union all
        select 2, 'lname'::pg_catalog.text, o."lname"::pg_catalog.text collate pg_catalog."C", n."lname"::pg_catalog.text collate pg_catalog."C"
        where o."lname" is distinct from n."lname" collate pg_catalog."C"
      ) f
      where (not (o."idu" is distinct from n."idu"));
    logged := logged or found;
  end if;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$usr$update"() owner to "eventlog"
/
create trigger "!eventlog_update"
  after update on "public"."usr"
  referencing old table as eventlog_old new table as eventlog_new
  for each statement execute function "public"."eventlog$public$usr$update"()
/
create or replace function "public"."eventlog$public$usr$delete"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"children": ["public.usr_phone.n"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 4, session_user, 'usr', 'idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text
  from eventlog_old o;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$usr$delete"() owner to "eventlog"
/
create trigger "!eventlog_delete"
  after delete on "public"."usr"
  referencing old table as eventlog_old
  for each statement execute function "public"."eventlog$public$usr$delete"()
/
create or replace function "public"."eventlog$public$usr$truncate"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"children": ["public.usr_phone.n"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  -- A status is of this moment, not of the snapshot; after the last transaction of all comes an error.
  if pg_catalog.current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    declare
      since pg_catalog.pg_snapshot := pg_catalog.pg_current_snapshot();
      later pg_catalog.int8 := pg_catalog.pg_snapshot_xmax(since)::pg_catalog.text::pg_catalog.int8;
      committed pg_catalog.bool := exists (
        select from pg_catalog.pg_snapshot_xip(since) running
        where coalesce(pg_catalog.pg_xact_status(running), 'committed') operator(pg_catalog.=) 'committed'
      );
    begin
      begin
        for ahead in 0..1000000 loop
          exit when committed;
          committed := coalesce(
            pg_catalog.pg_xact_status((later operator(pg_catalog.+) ahead)::pg_catalog.text::pg_catalog.xid8), 'committed'
          ) operator(pg_catalog.=) 'committed';
        end loop;
        committed := true; -- or there were too many to ask for each
      exception
        when invalid_parameter_value then
          null;
      end;
      if committed then
        raise exception using errcode = '40001',
          message = pg_catalog.format('%s is not truncated: a transaction committed since the snapshot of this one,'
            ' and no delete could be logged for rows that it wrote', tg_relid::pg_catalog.regclass),
          hint = 'repeat the transaction with the truncate first, or truncate at READ COMMITTED';
      end if;
    end;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 4, session_user, 'usr', 'idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text
  from only "public"."usr" o;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$usr$truncate"() owner to "eventlog"
/
create trigger "!eventlog_truncate"
  before truncate on "public"."usr"
  for each statement execute function "public"."eventlog$public$usr$truncate"()
/
create or replace function "public"."eventlog$public$usr$public$usr_phone$insert"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"children": ["public.usr_phone.n"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from eventlog_new n
    cross join lateral (
      select 2 as event_type, 'usr_phone.n'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."n"::pg_catalog.text collate pg_catalog."C" as new_value
      where n."n" is distinct from null
    ) f
    where (n."idu" is distinct from null);
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$usr$public$usr_phone$insert"() owner to "eventlog"
/
create trigger "!eventlog_insert$usr"
  after insert on "public"."usr_phone"
  referencing new table as eventlog_new
  for each statement execute function "public"."eventlog$public$usr$public$usr_phone$insert"()
/
create or replace function "public"."eventlog$public$usr$public$usr_phone$update"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"children": ["public.usr_phone.n"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from (select x."idu", x."n", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
    full join (select x."idu", x."n", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
    cross join lateral (
      select 2 as event_type, 'usr_phone.n'::pg_catalog.text as column_name, o."n"::pg_catalog.text collate pg_catalog."C" as old_value, null::pg_catalog.text as new_value
      where o."n" is distinct from null
    ) f
    where ((o."idu" is distinct from n."idu") and o."idu" is distinct from null and exists (select from "public"."usr" p where p."idu" operator(pg_catalog.=) o."idu"));
  logged := logged or found;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from (select x."idu", x."n", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
    full join (select x."idu", x."n", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
    cross join lateral (
      select 2 as event_type, 'usr_phone.n'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."n"::pg_catalog.text collate pg_catalog."C" as new_value
      where n."n" is distinct from null
    ) f
    where ((o."idu" is distinct from n."idu") and n."idu" is distinct from null);
  logged := logged or found;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) n."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from (select x."idu", x."n", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
    full join (select x."idu", x."n", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
    cross join lateral (
      select 2 as event_type, 'usr_phone.n'::pg_catalog.text as column_name, o."n"::pg_catalog.text collate pg_catalog."C" as old_value, n."n"::pg_catalog.text collate pg_catalog."C" as new_value
      where o."n" is distinct from n."n" collate pg_catalog."C"
    ) f
    where (not (o."idu" is distinct from n."idu") and n."idu" is distinct from null);
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$usr$public$usr_phone$update"() owner to "eventlog"
/
create trigger "!eventlog_update$usr"
  after update on "public"."usr_phone"
  referencing old table as eventlog_old new table as eventlog_new
  for each statement execute function "public"."eventlog$public$usr$public$usr_phone$update"()
/
create or replace function "public"."eventlog$public$usr$public$usr_phone$delete"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"children": ["public.usr_phone.n"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
  from eventlog_old o
    cross join lateral (
      select 2 as event_type, 'usr_phone.n'::pg_catalog.text as column_name, o."n"::pg_catalog.text collate pg_catalog."C" as old_value, null::pg_catalog.text as new_value
      where o."n" is distinct from null
    ) f
    where (o."idu" is distinct from null and exists (select from "public"."usr" p where p."idu" operator(pg_catalog.=) o."idu"));
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$usr$public$usr_phone$delete"() owner to "eventlog"
/
create trigger "!eventlog_delete$usr"
  after delete on "public"."usr_phone"
  referencing old table as eventlog_old
  for each statement execute function "public"."eventlog$public$usr$public$usr_phone$delete"()
/
create or replace function "public"."eventlog$public$usr$public$usr_phone$truncate"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"children": ["public.usr_phone.n"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  -- A status is of this moment, not of the snapshot; after the last transaction of all comes an error.
  if pg_catalog.current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    declare
      since pg_catalog.pg_snapshot := pg_catalog.pg_current_snapshot();
      later pg_catalog.int8 := pg_catalog.pg_snapshot_xmax(since)::pg_catalog.text::pg_catalog.int8;
      committed pg_catalog.bool := exists (
        select from pg_catalog.pg_snapshot_xip(since) running
        where coalesce(pg_catalog.pg_xact_status(running), 'committed') operator(pg_catalog.=) 'committed'
      );
    begin
      begin
        for ahead in 0..1000000 loop
          exit when committed;
          committed := coalesce(
            pg_catalog.pg_xact_status((later operator(pg_catalog.+) ahead)::pg_catalog.text::pg_catalog.xid8), 'committed'
          ) operator(pg_catalog.=) 'committed';
        end loop;
        committed := true; -- or there were too many to ask for each
      exception
        when invalid_parameter_value then
          null;
      end;
      if committed then
        raise exception using errcode = '40001',
          message = pg_catalog.format('%s is not truncated: a transaction committed since the snapshot of this one,'
            ' and no delete could be logged for rows that it wrote', tg_relid::pg_catalog.regclass),
          hint = 'repeat the transaction with the truncate first, or truncate at READ COMMITTED';
      end if;
    end;
  end if;
  <<eventlog_truncate>>
  declare
    exclusive pg_catalog.oid[] := array(
      select l.relation
      from pg_catalog.pg_locks l
      where l.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()
        and l.locktype operator(pg_catalog.=) 'relation'
        and l.mode operator(pg_catalog.=) 'AccessExclusiveLock'
    );
  begin
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) o."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
    from only "public"."usr_phone" o
      cross join lateral (
        select 2 as event_type, 'usr_phone.n'::pg_catalog.text as column_name, o."n"::pg_catalog.text collate pg_catalog."C" as old_value, null::pg_catalog.text as new_value
        where o."n" is distinct from null
      ) f
      where (o."idu" is distinct from null and exists (select from "public"."usr" p where p."idu" operator(pg_catalog.=) o."idu" and p.tableoid operator(pg_catalog.<>) all (eventlog_truncate.exclusive)));
    logged := logged or found;
  end;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$usr$public$usr_phone$truncate"() owner to "eventlog"
/
create trigger "!eventlog_truncate$usr"
  before truncate on "public"."usr_phone"
  for each statement execute function "public"."eventlog$public$usr$public$usr_phone$truncate"()
/
create or replace function "public"."eventlog$public$usr$public$usr_phone$truncated"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"children": ["public.usr_phone.n"], "insert": 1, "update": 2}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  <<eventlog_truncate>>
  declare
    exclusive pg_catalog.oid[] := array(
      select l.relation
      from pg_catalog.pg_locks l
      where l.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()
        and l.locktype operator(pg_catalog.=) 'relation'
        and l.mode operator(pg_catalog.=) 'AccessExclusiveLock'
    );
  begin
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'usr', 'idu=' operator(pg_catalog.||) p."idu"::pg_catalog.text, f.column_name, f.old_value, f.new_value
    from "public"."usr" p
      cross join lateral (
        select 8 as event_type, 'usr_phone.n'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
        where true
      ) f
      where (p.tableoid operator(pg_catalog.=) any (eventlog_truncate.exclusive));
    logged := logged or found;
  end;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$usr$public$usr_phone$truncated"() owner to "eventlog"
/
create trigger "!eventlog_truncated$usr"
  after truncate on "public"."usr_phone"
  for each statement execute function "public"."eventlog$public$usr$public$usr_phone$truncated"()
/
create or replace function "public"."eventlog$public$dept$insert"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"without": ["photo"]}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 5, session_user, 'dept', 'idd=' operator(pg_catalog.||) n."idd"::pg_catalog.text
  from eventlog_new n;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$dept$insert"() owner to "eventlog"
/
create trigger "!eventlog_insert"
  after insert on "public"."dept"
  referencing new table as eventlog_new
  for each statement execute function "public"."eventlog$public$dept$insert"()
/
create or replace function "public"."eventlog$public$dept$update"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"without": ["photo"]}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  if not exists (select from eventlog_new offset 1) then
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
    select 6, session_user, 'dept', 'idd=' operator(pg_catalog.||) n."idd"::pg_catalog.text
    from eventlog_old o cross join eventlog_new n
      where (not (o."idd" is distinct from n."idd")) and (o."name" is distinct from n."name" collate pg_catalog."C");
    logged := logged or found;
    if not found then
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 4, session_user, 'dept', 'idd=' operator(pg_catalog.||) o."idd"::pg_catalog.text
      from eventlog_old o cross join eventlog_new n
        where (o."idd" is distinct from n."idd");
      logged := logged or found;
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 5, session_user, 'dept', 'idd=' operator(pg_catalog.||) n."idd"::pg_catalog.text
      from eventlog_old o cross join eventlog_new n
        where (o."idd" is distinct from n."idd");
      logged := logged or found;
    end if;
  else
    if exists (select from (select x."idd", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."idd", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      where o."idd" is distinct from n."idd") then
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 4, session_user, 'dept', 'idd=' operator(pg_catalog.||) o."idd"::pg_catalog.text
      from (select x."idd", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."idd", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        where (o."idd" is distinct from n."idd");
      logged := logged or found;
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 5, session_user, 'dept', 'idd=' operator(pg_catalog.||) n."idd"::pg_catalog.text
      from (select x."idd", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."idd", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        where (o."idd" is distinct from n."idd");
      logged := logged or found;
    end if;
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
    select 6, session_user, 'dept', 'idd=' operator(pg_catalog.||) n."idd"::pg_catalog.text
    from (select x."idd", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."idd", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      where (not (o."idd" is distinct from n."idd")) and (o."name" is distinct from n."name" collate pg_catalog."C");
    logged := logged or found;
  end if;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$dept$update"() owner to "eventlog"
/
create trigger "!eventlog_update"
  after update on "public"."dept"
  referencing old table as eventlog_old new table as eventlog_new
  for each statement execute function "public"."eventlog$public$dept$update"()
/
create or replace function "public"."eventlog$public$dept$delete"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"without": ["photo"]}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 4, session_user, 'dept', 'idd=' operator(pg_catalog.||) o."idd"::pg_catalog.text
  from eventlog_old o;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$dept$delete"() owner to "eventlog"
/
create trigger "!eventlog_delete"
  after delete on "public"."dept"
  referencing old table as eventlog_old
  for each statement execute function "public"."eventlog$public$dept$delete"()
/
create or replace function "public"."eventlog$public$dept$truncate"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"without": ["photo"]}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  -- A status is of this moment, not of the snapshot; after the last transaction of all comes an error.
  if pg_catalog.current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    declare
      since pg_catalog.pg_snapshot := pg_catalog.pg_current_snapshot();
      later pg_catalog.int8 := pg_catalog.pg_snapshot_xmax(since)::pg_catalog.text::pg_catalog.int8;
      committed pg_catalog.bool := exists (
        select from pg_catalog.pg_snapshot_xip(since) running
        where coalesce(pg_catalog.pg_xact_status(running), 'committed') operator(pg_catalog.=) 'committed'
      );
    begin
      begin
        for ahead in 0..1000000 loop
          exit when committed;
          committed := coalesce(
            pg_catalog.pg_xact_status((later operator(pg_catalog.+) ahead)::pg_catalog.text::pg_catalog.xid8), 'committed'
          ) operator(pg_catalog.=) 'committed';
        end loop;
        committed := true; -- or there were too many to ask for each
      exception
        when invalid_parameter_value then
          null;
      end;
      if committed then
        raise exception using errcode = '40001',
          message = pg_catalog.format('%s is not truncated: a transaction committed since the snapshot of this one,'
            ' and no delete could be logged for rows that it wrote', tg_relid::pg_catalog.regclass),
          hint = 'repeat the transaction with the truncate first, or truncate at READ COMMITTED';
      end if;
    end;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 4, session_user, 'dept', 'idd=' operator(pg_catalog.||) o."idd"::pg_catalog.text
  from only "public"."dept" o;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$dept$truncate"() owner to "eventlog"
/
create trigger "!eventlog_truncate"
  before truncate on "public"."dept"
  for each statement execute function "public"."eventlog$public$dept$truncate"()
/
create or replace function "public"."eventlog$public$grp$insert"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"delete": null, "insert": 7, "replicated": true, "update": 8}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, case when exists (select from pg_catalog.pg_stat_get_subscription(null) s where s.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()) then null else session_user end, 'grp', 'idg=' operator(pg_catalog.||) case when n."idg"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."idg"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."idg"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
  from eventlog_new n
    cross join lateral (
      select 7 as event_type, 'name'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
      where n."name" is distinct from null
      union all
      select 7, 'name'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
      where n."name" is not distinct from null
    ) f;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$grp$insert"() owner to "eventlog"
/
create trigger "!eventlog_insert"
  after insert on "public"."grp"
  referencing new table as eventlog_new
  for each statement execute function "public"."eventlog$public$grp$insert"()
/
create or replace function "public"."eventlog$public$grp$update"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"delete": null, "insert": 7, "replicated": true, "update": 8}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  if not exists (select from eventlog_new offset 1) then
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, case when exists (select from pg_catalog.pg_stat_get_subscription(null) s where s.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()) then null else session_user end, 'grp', 'idg=' operator(pg_catalog.||) case when n."idg"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."idg"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."idg"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
    from eventlog_old o cross join eventlog_new n
      cross join lateral (
        select 8 as event_type, 'name'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
        where o."name" is distinct from n."name" collate pg_catalog."C"
      ) f
      where (not (o."idg" is distinct from n."idg" collate pg_catalog."C"));
    logged := logged or found;
    if not found then
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
      select f.event_type, case when exists (select from pg_catalog.pg_stat_get_subscription(null) s where s.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()) then null else session_user end, 'grp', 'idg=' operator(pg_catalog.||) case when n."idg"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."idg"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."idg"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
      from eventlog_old o cross join eventlog_new n
        cross join lateral (
          select 7 as event_type, 'name'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
          where n."name" is distinct from null
          union all
          select 7, 'name'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
          where n."name" is not distinct from null
        ) f
        where (o."idg" is distinct from n."idg" collate pg_catalog."C");
      logged := logged or found;
    end if;
  else
    if exists (select from (select x."idg", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."idg", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      where o."idg" is distinct from n."idg" collate pg_catalog."C") then
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
      select f.event_type, case when exists (select from pg_catalog.pg_stat_get_subscription(null) s where s.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()) then null else session_user end, 'grp', 'idg=' operator(pg_catalog.||) case when n."idg"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."idg"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."idg"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
      from (select x."idg", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."idg", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        cross join lateral (
          select 7 as event_type, 'name'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
          where n."name" is distinct from null
          union all
          select 7, 'name'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
          where n."name" is not distinct from null
        ) f
        where (o."idg" is distinct from n."idg" collate pg_catalog."C");
      logged := logged or found;
    end if;
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, case when exists (select from pg_catalog.pg_stat_get_subscription(null) s where s.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()) then null else session_user end, 'grp', 'idg=' operator(pg_catalog.||) case when n."idg"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."idg"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."idg"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
    from (select x."idg", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."idg", x."name", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      cross join lateral (
        select 8 as event_type, 'name'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
        where o."name" is distinct from n."name" collate pg_catalog."C"
      ) f
      where (not (o."idg" is distinct from n."idg" collate pg_catalog."C"));
    logged := logged or found;
  end if;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$grp$update"() owner to "eventlog"
/
create trigger "!eventlog_update"
  after update on "public"."grp"
  referencing old table as eventlog_old new table as eventlog_new
  for each statement execute function "public"."eventlog$public$grp$update"()
/
create or replace function "public"."eventlog$public$grp$replicated"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"delete": null, "insert": 7, "replicated": true, "update": 8}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  if tg_op operator(pg_catalog.=) 'INSERT' then
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, case when exists (select from pg_catalog.pg_stat_get_subscription(null) s where s.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()) then null else session_user end, 'grp', 'idg=' operator(pg_catalog.||) case when n."idg"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."idg"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."idg"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
    from (select new.*) n
      cross join lateral (
        select 7 as event_type, 'name'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
        where n."name" is distinct from null
        union all
        select 7, 'name'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
        where n."name" is not distinct from null
      ) f;
    logged := logged or found;
  elsif tg_op operator(pg_catalog.=) 'UPDATE' then
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, case when exists (select from pg_catalog.pg_stat_get_subscription(null) s where s.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()) then null else session_user end, 'grp', 'idg=' operator(pg_catalog.||) case when n."idg"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."idg"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."idg"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
    from (select old.*) o cross join (select new.*) n
      cross join lateral (
        select 8 as event_type, 'name'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
        where o."name" is distinct from n."name" collate pg_catalog."C"
      ) f
      where (not (o."idg" is distinct from n."idg" collate pg_catalog."C"));
    logged := logged or found;
    if not found then
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
      select f.event_type, case when exists (select from pg_catalog.pg_stat_get_subscription(null) s where s.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()) then null else session_user end, 'grp', 'idg=' operator(pg_catalog.||) case when n."idg"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."idg"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."idg"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
      from (select old.*) o cross join (select new.*) n
        cross join lateral (
          select 7 as event_type, 'name'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, null::pg_catalog.text as new_value
          where n."name" is distinct from null
          union all
          select 7, 'name'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
          where n."name" is not distinct from null
        ) f
        where (o."idg" is distinct from n."idg" collate pg_catalog."C");
      logged := logged or found;
    end if;
  end if;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$grp$replicated"() owner to "eventlog"
/
create trigger "!eventlog_replicated"
  after insert or update or delete on "public"."grp"
  for each row execute function "public"."eventlog$public$grp$replicated"()
/
alter table "public"."grp" enable replica trigger "!eventlog_replicated"
/
create or replace function "public"."eventlog$public$item$insert"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if new operator(pg_catalog.*<>) (select row(f.*) from eventlog_new f limit 1) then
    return null; -- the first row of the statement logged them all
  end if;
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
  select f.event_type, session_user, 'item', 'a=' operator(pg_catalog.||) n."a"::pg_catalog.text operator(pg_catalog.||) '+b=' operator(pg_catalog.||) case when n."b"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."b"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."b"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
  from eventlog_new n
    cross join lateral (
      select 1 as event_type, 'price'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."price"::pg_catalog.text as new_value
      where n."price" is distinct from null
      union all
      select 1, 'price'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
      where n."price" is not distinct from null
    ) f;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$item$insert"() owner to "eventlog"
/
create trigger "!eventlog_insert"
  after insert on "public"."item"
  referencing new table as eventlog_new
  for each row execute function "public"."eventlog$public$item$insert"()
/
create or replace function "public"."eventlog$public$item$update"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if new operator(pg_catalog.*<>) (select row(f.*) from eventlog_new f limit 1) then
    return null; -- the first row of the statement logged them all
  end if;
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  if not exists (select from eventlog_new offset 1) then
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'item', 'a=' operator(pg_catalog.||) n."a"::pg_catalog.text operator(pg_catalog.||) '+b=' operator(pg_catalog.||) case when n."b"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."b"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."b"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
    from eventlog_old o cross join eventlog_new n
      cross join lateral (
        select 3 as event_type, 'price'::pg_catalog.text as column_name, o."price"::pg_catalog.text as old_value, n."price"::pg_catalog.text as new_value
        where o."price" is distinct from n."price"
      ) f
      where (not (o."a" is distinct from n."a" or o."b" is distinct from n."b" collate pg_catalog."C"));
    logged := logged or found;
    if not found then
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 4, session_user, 'item', 'a=' operator(pg_catalog.||) o."a"::pg_catalog.text operator(pg_catalog.||) '+b=' operator(pg_catalog.||) case when o."b"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."b"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."b"::pg_catalog.text collate pg_catalog."C" end
      from eventlog_old o cross join eventlog_new n
        where (o."a" is distinct from n."a" or o."b" is distinct from n."b" collate pg_catalog."C");
      logged := logged or found;
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
      select f.event_type, session_user, 'item', 'a=' operator(pg_catalog.||) n."a"::pg_catalog.text operator(pg_catalog.||) '+b=' operator(pg_catalog.||) case when n."b"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."b"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."b"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
      from eventlog_old o cross join eventlog_new n
        cross join lateral (
          select 1 as event_type, 'price'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."price"::pg_catalog.text as new_value
          where n."price" is distinct from null
          union all
          select 1, 'price'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
          where n."price" is not distinct from null
        ) f
        where (o."a" is distinct from n."a" or o."b" is distinct from n."b" collate pg_catalog."C");
      logged := logged or found;
    end if;
  else
    if exists (select from (select x."a", x."b", x."price", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."a", x."b", x."price", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      where o."a" is distinct from n."a" or o."b" is distinct from n."b" collate pg_catalog."C") then
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
      select 4, session_user, 'item', 'a=' operator(pg_catalog.||) o."a"::pg_catalog.text operator(pg_catalog.||) '+b=' operator(pg_catalog.||) case when o."b"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."b"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."b"::pg_catalog.text collate pg_catalog."C" end
      from (select x."a", x."b", x."price", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."a", x."b", x."price", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        where (o."a" is distinct from n."a" or o."b" is distinct from n."b" collate pg_catalog."C");
      logged := logged or found;
      insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
      select f.event_type, session_user, 'item', 'a=' operator(pg_catalog.||) n."a"::pg_catalog.text operator(pg_catalog.||) '+b=' operator(pg_catalog.||) case when n."b"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."b"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."b"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
      from (select x."a", x."b", x."price", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
        full join (select x."a", x."b", x."price", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
        cross join lateral (
          select 1 as event_type, 'price'::pg_catalog.text as column_name, null::pg_catalog.text as old_value, n."price"::pg_catalog.text as new_value
          where n."price" is distinct from null
          union all
          select 1, 'price'::pg_catalog.text, null::pg_catalog.text, null::pg_catalog.text
          where n."price" is not distinct from null
        ) f
        where (o."a" is distinct from n."a" or o."b" is distinct from n."b" collate pg_catalog."C");
      logged := logged or found;
    end if;
    insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value")
    select f.event_type, session_user, 'item', 'a=' operator(pg_catalog.||) n."a"::pg_catalog.text operator(pg_catalog.||) '+b=' operator(pg_catalog.||) case when n."b"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(n."b"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else n."b"::pg_catalog.text collate pg_catalog."C" end, f.column_name, f.old_value, f.new_value
    from (select x."a", x."b", x."price", pg_catalog.row_number() over () as eventlog_at from eventlog_old x) o
      full join (select x."a", x."b", x."price", pg_catalog.row_number() over () as eventlog_at from eventlog_new x) n on n.eventlog_at operator(pg_catalog.=) o.eventlog_at
      cross join lateral (
        select 3 as event_type, 'price'::pg_catalog.text as column_name, o."price"::pg_catalog.text as old_value, n."price"::pg_catalog.text as new_value
        where o."price" is distinct from n."price"
      ) f
      where (not (o."a" is distinct from n."a" or o."b" is distinct from n."b" collate pg_catalog."C"));
    logged := logged or found;
  end if;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$item$update"() owner to "eventlog"
/
create trigger "!eventlog_update"
  after update on "public"."item"
  referencing old table as eventlog_old new table as eventlog_new
  for each row execute function "public"."eventlog$public$item$update"()
/
create or replace function "public"."eventlog$public$item$delete"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if old operator(pg_catalog.*<>) (select row(f.*) from eventlog_old f limit 1) then
    return null; -- the first row of the statement logged them all
  end if;
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 4, session_user, 'item', 'a=' operator(pg_catalog.||) o."a"::pg_catalog.text operator(pg_catalog.||) '+b=' operator(pg_catalog.||) case when o."b"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."b"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."b"::pg_catalog.text collate pg_catalog."C" end
  from eventlog_old o;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$item$delete"() owner to "eventlog"
/
create trigger "!eventlog_delete"
  after delete on "public"."item"
  referencing old table as eventlog_old
  for each row execute function "public"."eventlog$public$item$delete"()
/
create or replace function "public"."eventlog$public$item$truncate"() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
set time zone 'UTC'
set datestyle to 'ISO, YMD'
set intervalstyle to 'postgres'
set bytea_output to 'hex'
set extra_float_digits to 1
set quote_all_identifiers to off
as $eventlog$
-- eventlog track {"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}
declare
  logged boolean := false;
begin
  perform pg_catalog.pg_current_xact_id(); -- before a record_id is drawn: by this the publisher knows who may still write
  if pg_catalog.current_setting('eventlog.capture', true) operator(pg_catalog.<>) '' and "public"."eventlog_capture_is_off"() then
    return null;
  end if;
  -- A status is of this moment, not of the snapshot; after the last transaction of all comes an error.
  if pg_catalog.current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    declare
      since pg_catalog.pg_snapshot := pg_catalog.pg_current_snapshot();
      later pg_catalog.int8 := pg_catalog.pg_snapshot_xmax(since)::pg_catalog.text::pg_catalog.int8;
      committed pg_catalog.bool := exists (
        select from pg_catalog.pg_snapshot_xip(since) running
        where coalesce(pg_catalog.pg_xact_status(running), 'committed') operator(pg_catalog.=) 'committed'
      );
    begin
      begin
        for ahead in 0..1000000 loop
          exit when committed;
          committed := coalesce(
            pg_catalog.pg_xact_status((later operator(pg_catalog.+) ahead)::pg_catalog.text::pg_catalog.xid8), 'committed'
          ) operator(pg_catalog.=) 'committed';
        end loop;
        committed := true; -- or there were too many to ask for each
      exception
        when invalid_parameter_value then
          null;
      end;
      if committed then
        raise exception using errcode = '40001',
          message = pg_catalog.format('%s is not truncated: a transaction committed since the snapshot of this one,'
            ' and no delete could be logged for rows that it wrote', tg_relid::pg_catalog.regclass),
          hint = 'repeat the transaction with the truncate first, or truncate at READ COMMITTED';
      end if;
    end;
  end if;
  insert into "public"."eventlog" ("event_type", "perpetrator", "table_name", "table_key")
  select 4, session_user, 'item', 'a=' operator(pg_catalog.||) o."a"::pg_catalog.text operator(pg_catalog.||) '+b=' operator(pg_catalog.||) case when o."b"::pg_catalog.text collate pg_catalog."C" operator(pg_catalog.~) E'[,;''+"=\\\\<>]' then '"' operator(pg_catalog.||) pg_catalog.replace(pg_catalog.replace(o."b"::pg_catalog.text collate pg_catalog."C", E'\\', E'\\\\'), '"', E'\\"') operator(pg_catalog.||) '"' else o."b"::pg_catalog.text collate pg_catalog."C" end
  from only "public"."item" o;
  logged := logged or found;
  -- a transaction that notified could not be prepared for two-phase commit: where there is such a thing, nobody does
  if logged and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
    -- a publisher that sleeps holds this lock: only then is there somebody to wake
    if not (pg_catalog.pg_try_advisory_lock_shared(1702259815, -1735834242) and pg_catalog.pg_advisory_unlock_shared(1702259815, -1735834242)) then
      perform pg_catalog.pg_notify('eventlog', 'eventlog');
    end if;
  end if;
  return null;
end
$eventlog$
/
alter function "public"."eventlog$public$item$truncate"() owner to "eventlog"
/
create trigger "!eventlog_truncate"
  before truncate on "public"."item"
  for each statement execute function "public"."eventlog$public$item$truncate"()
/
create table "public"."eventlog_applied" (
  source varchar(200) not null,
  state text,
  rounds numeric(19) not null,
  constraint "eventlog_applied_key" primary key (source)
)
/
create table "public"."eventlog_applied_marks" (
  source varchar(200) not null,
  mark varchar(200) not null,
  constraint "eventlog_applied_marks_key" primary key (source, mark)
)
/
create table "public"."eventlog_applied_refused" (
  source varchar(200) not null,
  mark varchar(200) not null,
  object_digest varchar(64) not null,
  place numeric(19) not null,
  tried numeric(19) not null,
  state varchar(10) not null,
  constraint "eventlog_applied_refused_key" primary key (source, mark, object_digest),
  constraint "eventlog_applied_refused_objects_key" unique (source, object_digest, mark)
)
/
create table "public"."eventlog_applied_ddl" (
  source varchar(200) not null,
  made_at timestamp not null,
  statement text not null
)
/
create table "public"."fish" (
  "id" INTEGER not null,
  "name" VARCHAR(20),
  constraint "fish_key" primary key ("id")
)
/
create table "public"."pond" (
  "id" INTEGER not null,
  "name" VARCHAR(20),
  constraint "pond_key" primary key ("id")
)
/
insert into "compared" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (1, 'S', 1, timestamp '2026-11-30 23:43:21.229435', null, 'public.pet', 'idp=1', 'name', null, 'Rex I')
/
insert into "compared" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (2, 'S', 1, timestamp '2026-11-30 23:43:21.229739', null, 'public.pet', 'idp=2', 'name', null, 'Mimi')
/
insert into "compared_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (1, 1, 1, 2, timestamp '2026-11-30 23:43:21.437786', timestamp '2026-11-30 23:43:21.457079', '[["1-1",[["compared:1",[1],1000,"fGkiekwk4dE"]]],["2-2",[["compared:2",[2],1000,"oWpIXZe5W6c"]]]]')
/
insert into "compared_known" ("object_table", "key_hash", "object_key", "digest", "row_values", "next_digest", "next_values", "first_id", "last_id", "failed") overriding system value values ('public.pet', '1c62bc14ecd9ef26dc7f68bf6a71327d', 'idp=2', null, null, 'bd3f6dfdd6f648a82f023658ec13596b', '669ef29f768ff6df{"name": "Mimi"}', 2, 2, 0)
/
insert into "compared_known" ("object_table", "key_hash", "object_key", "digest", "row_values", "next_digest", "next_values", "first_id", "last_id", "failed") overriding system value values ('public.pet', '8752300b51abe210fd9e51c9e3c449b3', 'idp=1', null, null, '5da7b7014d136b317d9a66ab591e2508', '0769a046f84c9ce3{"name": "Rex I"}', 1, 1, 0)
/
insert into "compared_known" ("object_table", "key_hash", "object_key", "digest", "row_values", "next_digest", "next_values", "first_id", "last_id", "failed") overriding system value values ('public.pet', 'base                            ', 'base', null, '{"format": 2, "objects": 2, "mark": null, "names": ["name"], "key": ["idp"], "stale": [], "unsure": false}', null, null, null, null, 0)
/
insert into "compared_notice" ("notice_id", "noticed_at", "username", "kind", "table_name", "table_key", "first_id", "last_id", "row_count", "record_ids", "event_id", "answer", "who", "words", "session_id") overriding system value values (1, timestamp '2026-11-30 23:43:20.951746', 'eventlog', 'publish', null, null, null, null, null, null, null, null, null, '{"document": "xds", "time_syntax": 1, "insert_query_back": "modify", "dialect": "postgresql", "tables": [{"schema": "public", "name": "pet", "key": ["idp"], "view": false, "logged_as": null, "closed": false, "columns": [{"name": "idp", "type": "integer", "kind": "INT", "published": "idp"}, {"name": "name", "type": "character varying(64)", "kind": "STRING", "published": "name"}]}]}', null)
/
insert into "compared_notice" ("notice_id", "noticed_at", "username", "kind", "table_name", "table_key", "first_id", "last_id", "row_count", "record_ids", "event_id", "answer", "who", "words", "session_id") overriding system value values (2, timestamp '2026-11-30 23:43:21.122707', 'eventlog', 'compare', 'public.pet', null, null, null, null, null, null, null, null, null, null)
/
insert into "compared_sent" ("record_id") overriding system value values (2)
/
insert into "compared_state" ("one", "attached", "association", "epoch", "leader", "leader_session", "leader_since", "paused_at", "paused_by", "pause_reason", "rested_at", "cycle_at", "cycle_facts", "heartbeat_at", "published_as", "slot_facts") overriding system value values (1, 0, 'canonical', 1, 'vm, pid 26100', '26107', timestamp '2026-11-30 23:43:20.665049', null, null, null, null, timestamp '2026-11-30 23:43:21.461839', '{"rows": 2, "finished": 2, "documents": 2, "events": 2, "refused": 0, "loopback": 0, "full": false, "paused": false, "stopped": false, "down": null, "outage": [], "wait": null, "unread": {}, "stopped_tables": [], "no_page": "", "seconds": 0.09809052500349935, "query_back": 5.5010023061186075e-06, "delivery": 0.006206370999279898, "delivery_wait": 0.004652117999279892, "answers": {}, "running": false, "worked": {"at": "2026-11-30 23:43:21.458289", "rows": 2, "finished": 2, "documents": 2, "events": 2, "refused": 0, "seconds": 0.09809052500349935, "delivery": 0.006206370999279898, "delivery_wait": 0.004652117999279892}, "down_since": null, "next_try": null, "remedy": null, "pace": 20.39, "slow_delivery": "", "finished_by_leader": 2, "course": [[1796082201.36, 2, 0, 0]]}', null, '{"values": {"sync_tables": "pet", "allow_loopback": true, "handle_future_events": false, "publication_mode": "compare"}, "tables": {}, "has_source": false}', null)
/
insert into "compared_version" ("version_num") overriding system value values ('0001')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (1, 'S', 1, timestamp '2026-11-30 23:43:06.668435', 'eventlog', 'usr', 'idu=1', 'fname', null, 'Jack')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (2, 'S', 1, timestamp '2026-11-30 23:43:06.668933', 'eventlog', 'usr', 'idu=1', 'lname', null, 'Frost')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (3, 'S', 1, timestamp '2026-11-30 23:43:06.740377', 'eventlog', 'usr', 'idu=2', 'fname', null, 'Jill')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (4, 'S', 1, timestamp '2026-11-30 23:43:06.740566', 'eventlog', 'usr', 'idu=2', 'lname', null, 'Frost')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (5, 'S', 1, timestamp '2026-11-30 23:43:06.809293', 'eventlog', 'usr', 'idu=3', 'fname', null, 'June')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (6, 'S', 1, timestamp '2026-11-30 23:43:06.809501', 'eventlog', 'usr', 'idu=3', 'lname', null, 'Frost')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (7, 'S', 1, timestamp '2026-11-30 23:43:06.861129', 'eventlog', 'usr', 'idu=4', 'fname', null, 'Joe')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (8, 'S', 1, timestamp '2026-11-30 23:43:06.861367', 'eventlog', 'usr', 'idu=4', 'lname', null, 'Frost')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (9, 'S', 1, timestamp '2026-11-30 23:43:06.904979', 'eventlog', 'usr', 'idu=5', 'fname', null, 'Jim')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (10, 'S', 1, timestamp '2026-11-30 23:43:06.905361', 'eventlog', 'usr', 'idu=5', 'lname', null, 'Frost')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (11, 'S', 1, timestamp '2026-11-30 23:43:06.955724', 'eventlog', 'usr', 'idu=6', 'fname', null, 'Jane')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (12, 'S', 1, timestamp '2026-11-30 23:43:06.955943', 'eventlog', 'usr', 'idu=6', 'lname', null, 'Frost')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (13, 'S', 1, timestamp '2026-11-30 23:43:06.992158', 'eventlog', 'usr', 'idu=7', 'fname', null, 'Joy')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (14, 'S', 1, timestamp '2026-11-30 23:43:06.992392', 'eventlog', 'usr', 'idu=7', 'lname', null, 'Frost')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (15, 'W', 2, timestamp '2026-11-30 23:43:08.190284', 'eventlog', 'usr', 'idu=1', 'fname', 'Jack', 'changed')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (16, 'E', 2, timestamp '2026-11-30 23:43:09.626396', 'eventlog', 'usr', 'idu=2', 'fname', 'Jill', 'changed')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (17, 'F', 2, timestamp '2026-11-30 23:43:11.064436', 'eventlog', 'usr', 'idu=7', 'fname', 'Joy', 'changed')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (18, 'N', 2, timestamp '2026-11-30 23:43:12.304613', 'eventlog', 'usr', 'idu=3', 'fname', 'June', 'changed')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (19, 'N', 2, timestamp '2026-11-30 23:43:13.677628', 'eventlog', 'usr', 'idu=3', 'lname', 'Frost', 'held')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (20, 'W', 2, timestamp '2026-11-30 23:43:13.745735', 'eventlog', 'usr', 'idu=4', 'fname', 'Joe', 'changed')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (21, 'E', 6, timestamp '2026-11-30 23:43:15.730885', null, 'usr', 'nonsense', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (22, 'E', 12, timestamp '2026-11-30 23:43:15.731458', null, 'usr', 'idu=5', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (23, 'S', 5, timestamp '2026-11-30 23:43:17.174754', 'eventlog', 'dept', 'idd=1', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (24, 'S', 5, timestamp '2026-11-30 23:43:17.226330', 'eventlog', 'dept', 'idd=2', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (25, 'S', 5, timestamp '2026-11-30 23:43:17.274262', 'eventlog', 'dept', 'idd=3', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (26, 'S', 5, timestamp '2026-11-30 23:43:17.320968', 'eventlog', 'dept', 'idd=4', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (27, 'S', 5, timestamp '2026-11-30 23:43:17.368448', 'eventlog', 'dept', 'idd=5', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (28, 'N', 5, timestamp '2026-11-30 23:43:18.998466', null, 'dept', 'idd=1', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (29, 'N', 5, timestamp '2026-11-30 23:43:18.998766', null, 'dept', 'idd=2', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (30, 'N', 2, timestamp '2026-11-30 23:43:19.044913', 'eventlog', 'usr', 'idu=5', 'fname', 'Jim', 'changed')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (31, 'N', 1, timestamp '2026-11-30 23:43:20.210243', null, 'usr', 'idu=1', 'fname', null, 'a')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (32, 'N', 2, timestamp '2026-11-30 23:43:20.222877', null, 'usr', 'idu=1', 'fname', 'a', 'b')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (33, 'N', 3, timestamp '2026-11-30 23:43:20.223023', null, 'usr', 'idu=1', 'fname', 'b', 'it''s \ one')
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (34, 'N', 4, timestamp '2026-11-30 23:43:20.229360', null, 'usr', 'idu=6', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (35, 'N', 5, timestamp '2026-11-30 23:43:20.229504', null, 'usr', 'idu=1', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (36, 'N', 6, timestamp '2026-11-30 23:43:20.229660', null, 'usr', 'idu=2', null, null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (37, 'N', 7, timestamp '2026-11-30 23:43:20.238162', null, 'usr', 'idu=1', 'lname', null, null)
/
insert into "eventlog" ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key", "column_name", "old_value", "new_value") overriding system value values (38, 'N', 8, timestamp '2026-11-30 23:43:20.238311', null, 'usr', 'idu=1', 'lname', null, null)
/
insert into "eventlog_answer" ("batch", "part", "answer", "words", "answered_at") overriding system value values (2, 1, 'warning', 'taken, but', timestamp '2026-11-30 23:43:09.493074')
/
insert into "eventlog_answer" ("batch", "part", "answer", "words", "answered_at") overriding system value values (4, 1, 'error', 'no eventlog:16', timestamp '2026-11-30 23:43:10.901074')
/
insert into "eventlog_answer" ("batch", "part", "answer", "words", "answered_at") overriding system value values (5, 1, 'fatal', 'the receiver shuts down', timestamp '2026-11-30 23:43:12.200001')
/
insert into "eventlog_answer" ("batch", "part", "answer", "words", "answered_at") overriding system value values (6, 1, 'retry', 'the receiver answered retry', timestamp '2026-11-30 23:43:13.564758')
/
insert into "eventlog_answer" ("batch", "part", "answer", "words", "answered_at") overriding system value values (7, 1, 'error', 'no eventlog:20', timestamp '2026-11-30 23:43:14.828866')
/
insert into "eventlog_applied" ("source", "state", "rounds") overriding system value values ('qlik-table', '{"version": 1, "by": "stream", "read": "{\"since\": \"\", \"tables\": {\"fish\": [\"2023111422134099\", \"20231114221441000000000000000000011\", [\"20231114221440000000000000000000008BU\", \"20231114221441000000000000000000011I\"]], \"pond\": [\"2023111422134099\", \"20231114221441000000000000000000010\", [\"20231114221440000000000000000000009D\", \"20231114221441000000000000000000010BU\"]]}, \"loaded\": {}}", "changed": [[null, "fish"], [null, "pond"]], "loading": []}', 1)
/
insert into "eventlog_applied_ddl" ("source", "made_at", "statement") overriding system value values ('qlik-table', timestamp '2026-11-30 23:43:06.051835', 'create table "public"."fish" (
  "id" INTEGER not null,
  "name" VARCHAR(20),
  constraint "fish_key" primary key ("id")
) ')
/
insert into "eventlog_applied_ddl" ("source", "made_at", "statement") overriding system value values ('qlik-table', timestamp '2026-11-30 23:43:06.177114', 'create table "public"."pond" (
  "id" INTEGER not null,
  "name" VARCHAR(20),
  constraint "pond_key" primary key ("id")
) ')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (1, 1, 1, 14, timestamp '2026-11-30 23:43:08.101449', timestamp '2026-11-30 23:43:08.133113', '[["1-2",[["eventlog:1-2:17f8af97",[1,2],1000,"uEZvED7H6VU"]]],["3-4",[["eventlog:3-4:5cc3ec01",[3,4],1000,"yPxFlBYu6rk"]]],["5-6",[["eventlog:5-6:e96f71a6",[5,6],1000,"o+yQXgzRGh4"]]],["7-8",[["eventlog:7-8:294a6563",[7,8],1000,"73FEprVA3P0"]]],["9-10",[["eventlog:9-10:69c37d73",[9,10],1000,"L+R158LWqQI"]]],["11-12",[["eventlog:11-12:97083d1d",[11,12],1000,"PlSA54EAsEk"]]],["13-14",[["eventlog:13-14:858d37b5",[13,14],1000,"vmhNQPLwrno"]]]]')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (2, 2, 15, 15, timestamp '2026-11-30 23:43:09.455563', timestamp '2026-11-30 23:43:09.493074', '[["15-15",[["eventlog:15",[15],1000,"6uVLZIeAGM8"]]]]')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (3, 2, 15, 15, timestamp '2026-11-30 23:43:09.545928', timestamp '2026-11-30 23:43:09.493074', '[["warned",[{"log":"warned","max_changes":0,"sizes":[],"ranges":[15,1]}]]]')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (4, 3, 16, 16, timestamp '2026-11-30 23:43:10.836738', timestamp '2026-11-30 23:43:10.901074', '[["16-16",[["eventlog:16",[16],1000,"Oh1K/MHGbR8"]]]]')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (5, 4, 17, 17, timestamp '2026-11-30 23:43:12.160020', timestamp '2026-11-30 23:43:12.200001', '[["17-17",[["eventlog:17",[17],1000,"YZi3FosO/ug"]]]]')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (6, 5, 18, 18, timestamp '2026-11-30 23:43:13.531399', timestamp '2026-11-30 23:43:13.564758', '[["18-18",[["eventlog:18",[18],1000,"k0Ky+JwT73s"]]]]')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (7, 6, 20, 20, timestamp '2026-11-30 23:43:14.790156', timestamp '2026-11-30 23:43:14.828866', '[["20-20",[["eventlog:20",[20],1000,"XjF9vQyDJTg"]]]]')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (8, 7, 21, 22, timestamp '2026-11-30 23:43:17.115117', timestamp '2026-11-30 23:43:17.071266', '[["refused",[{"log":"refused","max_changes":0,"sizes":[],"ranges":[21,2]}]]]')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (9, 8, 23, 27, timestamp '2026-11-30 23:43:18.494852', timestamp '2026-11-30 23:43:18.533062', '[["23-23",[["eventlog:23",[23],1000,"Aqhh/PZgzVA"]]],["24-24",[["eventlog:24",[24],1000,"TE25Bd43YlY"]]],["25-25",[["eventlog:25",[25],1000,"IZDg3yRspGA"]]],["26-26",[["eventlog:26",[26],1000,"VsZCmHRLExc"]]],["27-27",[["eventlog:27",[27],1000,"zb7tecBAa/c"]]]]')
/
insert into "eventlog_batch" ("batch", "epoch", "first_id", "last_id", "remembered_at", "settled_at", "content") overriding system value values (10, 9, 28, 30, timestamp '2026-11-30 23:43:20.163705', null, '[["28-28",[["eventlog:28",[28],1000,"NGs14flC1Ds"]]],["29-29",[["eventlog:29",[29],1000,"keyawOgjq2M"]]],["30-30",[["eventlog:30",[30],1000,"jZI6Twh4zHA"]]]]')
/
insert into "eventlog_failed" ("record_id", "event_id", "reason", "document", "tries", "failed_at") overriding system value values (16, 'eventlog:16', 'no eventlog:16', '<nds dtdversion="4.0"><source><product version="0.1.0">eventlog</product><contact>eventlog</contact></source><input><modify class-name="usr" event-id="eventlog:16"><association>idu=2,table=usr,schema=public</association><modify-attr attr-name="fname"><remove-value><value type="string">Jill</value></remove-value><add-value><value type="string">changed</value></add-value></modify-attr></modify></input></nds>', 1, timestamp '2026-11-30 23:43:10.941377')
/
insert into "eventlog_failed" ("record_id", "event_id", "reason", "document", "tries", "failed_at") overriding system value values (17, 'eventlog:17', 'the receiver shuts down', '<nds dtdversion="4.0"><source><product version="0.1.0">eventlog</product><contact>eventlog</contact></source><input><modify class-name="usr" event-id="eventlog:17"><association>idu=7,table=usr,schema=public</association><modify-attr attr-name="fname"><remove-value><value type="string">Joy</value></remove-value><add-value><value type="string">changed</value></add-value></modify-attr></modify></input></nds>', 1, timestamp '2026-11-30 23:43:12.237410')
/
insert into "eventlog_failed" ("record_id", "event_id", "reason", "document", "tries", "failed_at") overriding system value values (21, null, 'malformed key: at character 9, expected ''='' after the column name', null, 1, timestamp '2026-11-30 23:43:17.113682')
/
insert into "eventlog_failed" ("record_id", "event_id", "reason", "document", "tries", "failed_at") overriding system value values (22, null, 'event_type is 12, not 1 to 8', null, 1, timestamp '2026-11-30 23:43:17.113500')
/
insert into "eventlog_held" ("object_hash", "spelling_hash", "table_name", "table_key") overriding system value values ('79603cb1610edc6eb79065b9f76eda9c20d9c51350bf823fde43933d61b96e45', '79603cb1610edc6eb79065b9f76eda9c20d9c51350bf823fde43933d61b96e45', 'usr', 'idu=3')
/
insert into "eventlog_notice" ("notice_id", "noticed_at", "username", "kind", "table_name", "table_key", "first_id", "last_id", "row_count", "record_ids", "event_id", "answer", "who", "words", "session_id") overriding system value values (1, timestamp '2026-11-30 23:43:15.548707', 'eventlog', 'skip', 'usr', 'idu=4', 20, 20, 1, '[20]', 'eventlog:20', 'E', 'ada', 'given up', null)
/
insert into "eventlog_notice" ("notice_id", "noticed_at", "username", "kind", "table_name", "table_key", "first_id", "last_id", "row_count", "record_ids", "event_id", "answer", "who", "words", "session_id") overriding system value values (2, timestamp '2026-11-30 23:43:18.795587', 'eventlog', 'resync', 'public.dept', null, null, null, null, null, null, null, null, 'are being logged, as event type 5', null)
/
insert into "eventlog_notice" ("notice_id", "noticed_at", "username", "kind", "table_name", "table_key", "first_id", "last_id", "row_count", "record_ids", "event_id", "answer", "who", "words", "session_id") overriding system value values (3, timestamp '2026-11-30 23:43:21.997767', 'eventlog', 'pause', null, null, null, null, null, null, null, null, 'ada', 'an upgrade', null)
/
insert into "eventlog_resync" ("table_name", "choice", "last_key", "rows_logged") overriding system value values ('public.dept', '[5, null]', '[["int", 2]]', 2)
/
insert into "eventlog_retry" ("object_hash", "first_id", "event_id", "object_table", "object_key", "record_ids", "max_changes", "tries", "next_at", "reason") overriding system value values ('79603cb1610edc6eb79065b9f76eda9c20d9c51350bf823fde43933d61b96e45', 18, 'eventlog:18', 'usr', 'idu=3', '[18]', 1000, 1, timestamp '2026-11-30 23:43:22.314879', 'the receiver answered retry')
/
insert into "eventlog_sent" ("record_id") overriding system value values (30)
/
insert into "eventlog_state" ("one", "attached", "association", "epoch", "leader", "leader_session", "leader_since", "paused_at", "paused_by", "pause_reason", "rested_at", "cycle_at", "cycle_facts", "heartbeat_at", "published_as", "slot_facts") overriding system value values (1, 0, 'canonical', 9, 'test', '26017', timestamp '2026-11-30 23:43:19.199666', timestamp '2026-11-30 23:43:21.980401', 'ada', 'an upgrade', null, null, null, null, null, null)
/
insert into "eventlog_tracked" ("schema_name", "table_name", "of_schema", "of_table", "logged_as", "table_id", "table_owner", "choice", "tracked_at", "tracked_by") overriding system value values ('public', 'dept', 'public', 'dept', 'dept', (select cast(cast('public.dept' as regclass) as oid)::text), current_user, '{"without": ["photo"]}', timestamp '2026-11-30 23:43:04.148034', 'eventlog')
/
insert into "eventlog_tracked" ("schema_name", "table_name", "of_schema", "of_table", "logged_as", "table_id", "table_owner", "choice", "tracked_at", "tracked_by") overriding system value values ('public', 'grp', 'public', 'grp', 'grp', (select cast(cast('public.grp' as regclass) as oid)::text), current_user, '{"delete": null, "insert": 7, "replicated": true, "update": 8}', timestamp '2026-11-30 23:43:04.715815', 'eventlog')
/
insert into "eventlog_tracked" ("schema_name", "table_name", "of_schema", "of_table", "logged_as", "table_id", "table_owner", "choice", "tracked_at", "tracked_by") overriding system value values ('public', 'item', 'public', 'item', 'item', (select cast(cast('public.item' as regclass) as oid)::text), current_user, '{"columns": ["price"], "granularity": "row", "insert": 1, "update": 3}', timestamp '2026-11-30 23:43:05.438380', 'eventlog')
/
insert into "eventlog_tracked" ("schema_name", "table_name", "of_schema", "of_table", "logged_as", "table_id", "table_owner", "choice", "tracked_at", "tracked_by") overriding system value values ('public', 'usr', 'public', 'usr', 'usr', (select cast(cast('public.usr' as regclass) as oid)::text), current_user, '{"insert": 1, "update": 2}', timestamp '2026-11-30 23:43:03.544631', 'eventlog')
/
insert into "eventlog_tracked" ("schema_name", "table_name", "of_schema", "of_table", "logged_as", "table_id", "table_owner", "choice", "tracked_at", "tracked_by") overriding system value values ('public', 'usr_phone', 'public', 'usr', null, (select cast(cast('public.usr_phone' as regclass) as oid)::text), current_user, '["n"]', timestamp '2026-11-30 23:43:03.554162', 'eventlog')
/
insert into "eventlog_try" ("record_id", "try_number", "event_id", "batch", "part") overriding system value values (15, 1, 'eventlog:15', 2, 1)
/
insert into "eventlog_try" ("record_id", "try_number", "event_id", "batch", "part") overriding system value values (16, 1, 'eventlog:16', 4, 1)
/
insert into "eventlog_try" ("record_id", "try_number", "event_id", "batch", "part") overriding system value values (17, 1, 'eventlog:17', 5, 1)
/
insert into "eventlog_try" ("record_id", "try_number", "event_id", "batch", "part") overriding system value values (18, 1, 'eventlog:18', 6, 1)
/
insert into "eventlog_try" ("record_id", "try_number", "event_id", "batch", "part") overriding system value values (20, 1, 'eventlog:20', 7, 1)
/
insert into "eventlog_version" ("version_num") overriding system value values ('0001')
/
insert into "fish" ("id", "name") overriding system value values (1, 'c')
/
insert into "fish" ("id", "name") overriding system value values (2, 'again')
/
insert into "pond" ("id", "name") overriding system value values (2, 'b')
/
insert into "slotted_slot" ("lsn", "committed_at", "noted_at") overriding system value values (24000000, null, timestamp '2026-11-30 23:43:21.613080')
/
insert into "slotted_state" ("one", "attached", "association", "epoch", "leader", "leader_session", "leader_since", "paused_at", "paused_by", "pause_reason", "rested_at", "cycle_at", "cycle_facts", "heartbeat_at", "published_as", "slot_facts") overriding system value values (1, 0, 'canonical', 0, null, null, null, null, null, null, null, null, null, null, null, '{"slot": "slotted", "system": "7000000000000000001", "publication": 16400, "members": {"public.pet": 16390}, "until": null, "altered_by": null, "since": {}}')
/
insert into "slotted_version" ("version_num") overriding system value values ('0001')
/
select setval(pg_get_serial_sequence('eventlog', 'record_id'), coalesce(max(record_id), 1), count(*) > 0) from eventlog
/
select setval(pg_get_serial_sequence('eventlog_notice', 'notice_id'), coalesce(max(notice_id), 1), count(*) > 0) from eventlog_notice
/
select setval(pg_get_serial_sequence('compared', 'record_id'), coalesce(max(record_id), 1), count(*) > 0) from compared
/
select setval(pg_get_serial_sequence('compared_notice', 'notice_id'), coalesce(max(notice_id), 1), count(*) > 0) from compared_notice
/
select setval(pg_get_serial_sequence('slotted', 'record_id'), coalesce(max(record_id), 1), count(*) > 0) from slotted
/
select setval(pg_get_serial_sequence('slotted_notice', 'notice_id'), coalesce(max(notice_id), 1), count(*) > 0) from slotted_notice
/
