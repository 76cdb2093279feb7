-- version --
-- Makes the table of revisions, and notes this one.
create table if not exists {version} (
  version_num varchar2(32 char) not null,
  constraint {version_pkc} primary key (version_num)
)
/
insert into {version} (version_num)
select {revision} from dual where not exists (select null from {version})
/
update {version} set version_num = {revision} where version_num < {revision}
/
commit
/

-- first_state --
-- Writes the one row of the state, and makes the table that a leader locks.
insert into {state} (one, attached, association, epoch)
select 1, {attached}, '{association}', 0 from dual where not exists (select null from {state})
/
create table if not exists {lock} ( -- its one row is locked by the session that leads
  one number(1) not null,
  constraint {lock_key} primary key (one)
)
/
insert into {lock} (one) select 1 from dual where not exists (select null from {lock})
/

-- create_log --
-- Makes the log.
create sequence if not exists {log_sequence} nocache order
/
create table if not exists {log} (
  {record_id} number(19) default {log_sequence}.nextval not null,
  {status} char(1) default 'N' not null,
  {event_type} number(10) not null,
  {event_time} timestamp(6) default sys_extract_utc(systimestamp) not null,
  {perpetrator} varchar2(4000) default sys_context('USERENV', 'SESSION_USER'),
  {table_name} varchar2(4000) not null,
  {table_key} varchar2(4000) not null,
  {column_name} varchar2(4000),
  {old_value} clob,
  {new_value} clob,
  constraint {log_key} primary key ({record_id})
)
/

-- create_pending --
-- Makes the index of pending rows.
create index if not exists {log_pending} on {log} (decode({status}, 'N', {record_id}))

-- drop_log --
-- Drops the log.
drop table if exists {log}
/
drop sequence if exists {log_sequence}
/

-- create_known --
-- Makes the table of what the receiver is known to have, of logs that are filled by comparing.
create table if not exists {known} (
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
  constraint {known_key} primary key (object_table, key_hash)
)
/
create index if not exists {known_way} on {known} (first_id)
/

-- future --
-- Makes the index of future events.
create index if not exists {log_future} on {log} (
  decode({status}, 'N', {event_time}),
  decode({status}, 'N', {record_id})
)

-- default_record_id --
-- Gives record_id its default in a log that has none.
create sequence {log_sequence} nocache order
/
alter table {log} modify ({record_id} default {log_sequence}.nextval)
/

-- default_status --
-- Gives status its default in a log that has none.
alter table {log} modify ({status} default 'N')

-- default_event_time --
-- Gives event_time its default in a log that has none.
alter table {log} modify ({event_time} default sys_extract_utc(systimestamp))

-- grants --
-- What a publisher needs that is not the log's owner.
grant select, update ({status}, {event_type}), delete on {log} to {role}
/
grant select, update on {state} to {role}
/
grant select, update on {lock} to {role}
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
grant execute on {leadership} to {role}
/
begin
  execute immediate q'[grant select on {log_sequence} to {role}]';
exception
  when others then
    if sqlcode not in (-942, -2289, -4043) then raise; end if; -- an attached log may have no such sequence
end;
/

-- drop_lock --
-- Drops the table that a leader locks.
drop table if exists {lock}
