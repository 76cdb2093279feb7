set define off
set sqlblanklines on
whenever sqlerror exit failure

begin
  execute immediate q'[
create table "EVENTLOG_STATE" (
  one number(1) not null,
  attached number(1) not null,
  association varchar2(9),
  epoch number(19) not null,
  leader varchar2(4000),
  leader_session varchar2(4000),
  leader_since timestamp(6),
  paused_at timestamp(6),
  paused_by varchar2(4000),
  pause_reason varchar2(4000),
  rested_at timestamp(6), -- when the publisher began to rest in this pause, null before
  cycle_at timestamp(6),
  cycle_facts clob,
  heartbeat_at timestamp(6),
  published_as clob, -- the settings of the last leader
  slot_facts clob, -- of the replication slot that fills the log, null: something else does
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
  first_id number(19) not null, -- no row of it is lower
  last_id number(19) not null,
  remembered_at timestamp(6) default sys_extract_utc(systimestamp) not null,
  settled_at timestamp(6), -- when its rows were finished, null before
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
create table "EVENTLOG_ANSWER" (
  batch number(19) not null, -- that had the documents; below 0: people redrove or skipped what had failed
  part number(10) not null, -- of what was answered to them, equal answers once
  answer varchar2(9) not null, -- success, warning, retry, error, fatal, or refused
  words clob,
  answered_at timestamp(6) not null,
  constraint "EVENTLOG_ANSWER_KEY" primary key (batch, part)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

begin
  execute immediate q'[
create table "EVENTLOG_TRY" (
  record_id number(19) not null,
  try_number number(10) not null, -- of the row, from 1; a first success is none
  event_id varchar2(4000), -- null: no event could be made of the row
  batch number(19) not null,
  part number(10) not null,
  constraint "EVENTLOG_TRY_KEY" primary key (record_id, try_number),
  constraint "EVENTLOG_TRY_WAY" unique (batch, part, record_id)
)
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
  -- what happened: `eventlog history` shows each kind
  kind varchar2(4000) not null,
  table_name varchar2(4000), -- of the only table
  table_key varchar2(4000), -- of the only object
  first_id number(19), -- no row of it is lower
  last_id number(19),
  row_count number(19),
  record_ids clob, -- as JSON, if rows are listed
  event_id varchar2(4000), -- of the only event
  answer varchar2(4000), -- the letters that the rows had
  who varchar2(4000), -- the person, null: only username is on record
  words clob, -- the reason, or what no column has
  session_id number(19), -- in which capture was switched off
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

alter session set
  time_zone = '+00:00'
  nls_date_format = 'YYYY-MM-DD HH24:MI:SS'
  nls_timestamp_format = 'YYYY-MM-DD HH24:MI:SS.FF9'
  nls_timestamp_tz_format = 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'
  nls_numeric_characters = '. '
  nls_comp = 'BINARY'
  nls_sort = 'BINARY';

create or replace procedure "EVENTLOG_EVENT"(
  an_event_type in number,
  a_table_name in varchar2,
  a_table_key in varchar2,
  a_column_name in varchar2 default null,
  an_old_value in clob default null,
  a_new_value in clob default null
) authid definer is
begin
  insert into "EVENTLOG" ("EVENT_TYPE", "PERPETRATOR", "TABLE_NAME", "TABLE_KEY", "COLUMN_NAME", "OLD_VALUE", "NEW_VALUE")
  values (
    "EVENTLOG_EVENT".an_event_type, sys_context('USERENV', 'SESSION_USER'), "EVENTLOG_EVENT".a_table_name,
    "EVENTLOG_EVENT".a_table_key, "EVENTLOG_EVENT".a_column_name, "EVENTLOG_EVENT".an_old_value, "EVENTLOG_EVENT".a_new_value);
end;
/

create or replace function "EVENTLOG_KEY_VALUE"(value in varchar2) return varchar2 deterministic is
begin
  return case when regexp_like(value, '[,;''+"=\<>]') then '"' || replace(replace(value, '\', '\\'), '"', '\"') || '"' else value end;
end;
/

-- made once, and never again: to replace a package with a variable breaks every session that uses it
begin
  execute immediate q'[
create package "EVENTLOG_SWITCH" authid definer is
  is_off boolean := false;
end;
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

create or replace package "EVENTLOG_CAPTURE" authid definer is
  procedure off(reason in varchar2);
  procedure resume;
  function is_off return boolean;
end;
/

create or replace package body "EVENTLOG_CAPTURE" is
  procedure off(reason in varchar2) is
    pragma autonomous_transaction; -- the line stays, whatever becomes of the load
  begin
    insert into "EVENTLOG_NOTICE" (username, kind, session_id, words)
    values (
      sys_context('USERENV', 'SESSION_USER'), 'capture off', sys_context('USERENV', 'SID'), off.reason);
    commit;
    "EVENTLOG_SWITCH".is_off := true;
  end;

  procedure resume is
  begin
    "EVENTLOG_SWITCH".is_off := false;
  end;

  function is_off return boolean is
  begin
    return "EVENTLOG_SWITCH".is_off;
  end;
end;
/

create or replace package "EVENTLOG_LEADERSHIP" authid definer is
  procedure hold;
  function held return number;
end;
/

create or replace package body "EVENTLOG_LEADERSHIP" is
  answer number; -- of the request, in this session

  procedure hold is
  begin
    -- a name of its own, not one of dbms_lock: what the owner was not granted must not break the others
    execute immediate 'begin :answer := sys.dbms_lock.request(:id, 6, 0, false); end;'
    using out answer, in sys.dbms_utility.get_hash_value(sys_context('USERENV', 'CURRENT_SCHEMA') || '.' || 'EVENTLOG_LOCK', 0, 1073741824);
  exception
    when others then
      if sqlcode <> -6550 then raise; end if; -- ORA-06550: the owner may not execute dbms_lock
      answer := null;
  end;

  function held return number is
  begin
    return case when answer in (0, 4) then 1 when answer is not null then 0 end; -- 4: this session has it
  end;
end;
/

declare
  told varchar2(4000);
begin
  select max(e.type || ' ' || e.name || ', line ' || e.line || ': ' || substr(e.text, 1, 1000))
    keep (dense_rank first order by e.type, e.name, e.sequence)
  into told
  from sys.all_errors e
  where e.attribute = 'ERROR' and e.owner = sys_context('USERENV', 'CURRENT_SCHEMA') and e.name in ('EVENTLOG_EVENT', 'EVENTLOG_KEY_VALUE', 'EVENTLOG_CAPTURE', 'EVENTLOG_CAPTURE_OFF', 'EVENTLOG_CAPTURE_ON', 'EVENTLOG_CAPTURE_IS_OFF', 'EVENTLOG_SWITCH', 'EVENTLOG_LEADERSHIP');
  if told is not null then
    raise_application_error(-20000, 'a routine of the log does not compile: ' || told);
  end if;
end;
/

