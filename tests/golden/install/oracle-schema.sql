set define off
set sqlblanklines on
whenever sqlerror exit failure

begin
  execute immediate q'[
create table "EVENTLOG_STATE" (
  one number(1) not null,
  attached number(1) not null,
  association varchar2(9),
  finish_mode varchar2(9),
  epoch number(19) not null,
  leader varchar2(4000),
  leader_session varchar2(4000),
  leader_since timestamp(6),
  paused_at timestamp(6),
  paused_by varchar2(4000),
  pause_reason varchar2(4000),
  cycle_at timestamp(6),
  cycle_facts clob,
  heartbeat_at timestamp(6),
  done_id number(19),
  done_time varchar2(40),
  done_last number(19),
  constraint "EVENTLOG_STATE_KEY" primary key (one),
  constraint "EVENTLOG_STATE_ONE" check (one = 1)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

insert into "EVENTLOG_STATE" (one, attached, association, epoch)
select 1, 0, 'canonical', 0 from dual where not exists (select null from "EVENTLOG_STATE");

begin
  execute immediate q'[
create table "EVENTLOG_LOCK" ( -- its one row is locked by the session that leads
  one number(1) not null,
  constraint "EVENTLOG_LOCK_KEY" primary key (one)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

insert into "EVENTLOG_LOCK" (one) select 1 from dual where not exists (select null from "EVENTLOG_LOCK");

begin
  execute immediate q'[
create table "EVENTLOG_BATCH" (
  batch number(19) not null,
  epoch number(19) not null,
  remembered_at timestamp(6) default sys_extract_utc(systimestamp) not null,
  content clob not null,
  constraint "EVENTLOG_BATCH_KEY" primary key (batch)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_RETRY" (
  object_hash char(64) not null, -- SHA-256 of object_table, a zero byte, object_key
  first_id number(19) not null, -- the first row of the event
  event_id varchar2(4000) not null,
  object_table varchar2(4000) not null, -- the one name of the object
  object_key varchar2(4000) not null,
  record_ids clob not null,
  max_changes number(10) not null, -- after how many values removed or added the event was cut
  tries number(10) not null,
  next_at timestamp(6) not null,
  reason clob not null,
  constraint "EVENTLOG_RETRY_KEY" primary key (object_hash, first_id)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_HELD" (
  object_hash char(64) not null, -- of an object whose events wait
  spelling_hash char(64) not null, -- SHA-256 of table_name, a zero byte, table_key, as rows spell them
  table_name varchar2(4000) not null,
  table_key varchar2(4000) not null,
  constraint "EVENTLOG_HELD_KEY" primary key (object_hash, spelling_hash)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_FAILED" (
  record_id number(19) not null,
  event_id varchar2(4000),
  reason clob not null,
  document clob,
  tries number(10) not null,
  failed_at timestamp(6) default sys_extract_utc(systimestamp) not null,
  object_hash char(64), -- SHA-256 of table_name, a zero byte, table_key
  overtaken number(1) default 0 not null,
  constraint "EVENTLOG_FAILED_KEY" primary key (record_id)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create index "EVENTLOG_FAILED_WAY" on "EVENTLOG_FAILED" (object_hash)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_SENT" (
  record_id number(19) not null, -- the highest that went out
  constraint "EVENTLOG_SENT_KEY" primary key (record_id)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_DONE" (
  block number(19) not null, -- of record_ids; no range goes beyond one
  first_id number(19) not null,
  last_id number(19) not null,
  letter char(1) not null,
  constraint "EVENTLOG_DONE_KEY" primary key (block, first_id)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_RESYNC" (
  table_name varchar2(512) not null,
  choice varchar2(4000) not null,
  last_key clob, -- null before the first chunk
  rows_logged number(19) not null,
  constraint "EVENTLOG_RESYNC_KEY" primary key (table_name)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_NOTICE" (
  notice_id number(19) generated by default as identity,
  noticed_at timestamp(6) default sys_extract_utc(systimestamp) not null,
  username varchar2(4000) default sys_context('USERENV', 'SESSION_USER') not null,
  kind varchar2(4000) not null, -- capture off, skip, purge
  table_name varchar2(4000),
  words clob,
  constraint "EVENTLOG_NOTICE_KEY" primary key (notice_id)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_TRACKED" (
  schema_name varchar2(128) not null,
  table_name varchar2(128) not null,
  of_schema varchar2(128) not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table varchar2(128) not null,
  logged_as varchar2(257), -- the table_name of its rows, which stays its own for ever, null for a child
  table_id varchar2(128), -- by which a table that was made anew is recognised
  table_owner varchar2(128),
  choice clob, -- what of it is logged, null: nothing any more
  tracked_at timestamp(6) default sys_extract_utc(systimestamp) not null,
  tracked_by varchar2(4000) default sys_context('USERENV', 'SESSION_USER') not null,
  constraint "EVENTLOG_TRACKED_KEY" primary key (schema_name, table_name, of_schema, of_table)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_KNOWN" (
  object_table varchar2(400) not null,
  key_hash varchar2(32) not null, -- the digest of object_key; `base` in the row that counts the table's objects
  object_key varchar2(4000), -- null in that row
  digest varchar2(32), -- of the values that the receiver has; null: it has none
  row_values clob, -- these values as JSON, unless only digests are kept
  next_digest varchar2(32), -- to which the event on its way leads; null: to none
  next_values clob,
  first_id number(19), -- the first and the last row of the event that is on its way or failed
  last_id number(19),
  failed number(1) default 0 not null,
  constraint "EVENTLOG_KNOWN_KEY" primary key (object_table, key_hash)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create index "EVENTLOG_KNOWN_WAY" on "EVENTLOG_KNOWN" (first_id)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create sequence "EVENTLOG_SEQUENCE" nocache order
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG" (
  "RECORD_ID" number(19) default "EVENTLOG_SEQUENCE".nextval not null,
  "STATUS" char(1) default 'N' not null,
  "EVENT_TYPE" number(10) not null,
  "EVENT_TIME" timestamp(6) default sys_extract_utc(systimestamp) not null,
  "PERPETRATOR" varchar2(4000) default sys_context('USERENV', 'SESSION_USER'),
  "TABLE_NAME" varchar2(4000) not null,
  "TABLE_KEY" varchar2(4000) not null,
  "COLUMN_NAME" varchar2(4000),
  "OLD_VALUE" clob,
  "NEW_VALUE" clob,
  constraint "EVENTLOG_KEY" primary key ("RECORD_ID")
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create index "EVENTLOG_PENDING" on "EVENTLOG" (decode("STATUS", 'N', "RECORD_ID"))
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

create or replace view "EVENTLOG_ROWS" as
select
  r."RECORD_ID",
  case
    when r."STATUS" = 'N' then coalesce((
      select d.letter
      from "EVENTLOG_DONE" d
      where d.block = trunc(r."RECORD_ID" / 2048) and r."RECORD_ID" between d.first_id and d.last_id
    ), 'N')
    else r."STATUS"
  end as "STATUS",
  r."EVENT_TYPE",
  r."EVENT_TIME",
  r."PERPETRATOR",
  r."TABLE_NAME",
  r."TABLE_KEY",
  r."COLUMN_NAME",
  r."OLD_VALUE",
  r."NEW_VALUE"
from "EVENTLOG" r;

begin
  execute immediate q'[
create table "EVENTLOG_VERSION" (
  version_num varchar2(32 char) not null,
  constraint "EVENTLOG_VERSION_PKC" primary key (version_num)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

insert into "EVENTLOG_VERSION" (version_num)
select '0001' from dual where not exists (select null from "EVENTLOG_VERSION");

update "EVENTLOG_VERSION" set version_num = '0001' where version_num < '0001';

commit;

begin
  execute immediate q'[
create index "EVENTLOG_FUTURE" on "EVENTLOG" (
  decode("STATUS", 'N', "EVENT_TIME"),
  decode("STATUS", 'N', "RECORD_ID")
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

