-- 0001_pending --
-- Makes the index of pending rows.
create index if not exists {log_pending} on {log} ({indexed_status}, {indexed_record_id})

-- 0003_leader --
-- Adds the leader's session and the highest record_id that went out.
alter table {state} add column if not exists leader_session text
/
alter table {state} add column if not exists highest_id bigint
/

-- 0004_association --
-- Adds how associations are written.
alter table {state} add column if not exists association varchar(9)
/
update {state} set association = '{association}' where association is null
/

-- 0005_finish --
-- Adds how rows are finished, and refuses a leader of a version that does not know it.
alter table {state} add column if not exists finish_mode varchar(9)
/
-- whoever begins an epoch says that it knows the mode: the statement of an older version does not
alter table {state} add column if not exists known_epoch bigint,
  add constraint if not exists {state_known} check (known_epoch = epoch)
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
alter table {state} add column if not exists done_id bigint
/
alter table {state} add column if not exists done_time varchar(40)
/
alter table {state} add column if not exists done_last bigint
/

-- 0008_overtaken --
-- Adds of which object a failed row is, and whether it was overtaken by rows that are gone.
-- the SHA-256 of table_name, a zero byte, table_key
alter table {failed} add column if not exists object_hash char(64)
/
alter table {failed} add column if not exists overtaken smallint not null default 0
/
create index if not exists {failed_way} on {failed} (object_hash)
/

-- future --
-- Makes the index of future events.
create index if not exists {log_future} on {log} ({indexed_status}, {event_time}, {indexed_record_id})
