-- version --
-- Makes the table of revisions, and notes this one.
create table if not exists {version} (
  version_num varchar(32) not null,
  constraint {version_pkc} primary key (version_num)
)
/
insert into {version} (version_num)
select {revision} from (select count(*) as installed from {version}) as v where installed = 0
/
update {version} set version_num = {revision} where version_num < {revision}
/

-- 0001_drop_log --
-- Drops the log.
drop table if exists {log}

-- 0001_drop_companions --
-- Drops the tables beside the log.
drop table if exists {notice}
/
drop table if exists {resync}
/
drop table if exists {failed}
/
drop table if exists {waiting}
/
drop table if exists {batch}
/
drop table if exists {state}
/

-- 0002_drop_tracked --
-- Drops the record of what is tracked.
drop table if exists {tracked}

-- 0004_drop_holds --
-- Drops the tables of events that wait and of objects that are held.
drop table if exists {held}
/
drop table if exists {retry}
/

-- 0006_done --
-- Makes the table of what is done, where it stands beside the log, and adds what tells that it belongs to it.
create table if not exists {done} (
  block bigint not null, -- of record_ids; no range goes beyond one
  first_id bigint not null,
  last_id bigint not null,
  letter char(1) not null,
  constraint {done_key} primary key (block, first_id)
)
/
alter table {state} add column if not exists done_id bigint
/
alter table {state} add column if not exists done_time varchar(40)
/
alter table {state} add column if not exists done_last bigint
/

-- 0006_rows --
-- Makes the view of the log's rows with their letters, wherever these stand.
create or replace view {rows_view} as
select
  r.{record_id},
  case
    when r.{status} = 'N' then coalesce((
      select d.letter
      from {done} d
      where d.block = {block_of_row} and r.{record_id} between d.first_id and d.last_id
    ), 'N')
    else r.{status}
  end as {status},
  r.{event_type},
  r.{event_time},
  r.{perpetrator},
  r.{table_name},
  r.{table_key},
  r.{column_name},
  r.{old_value},
  r.{new_value}
from {log} r

-- 0006_drop_rows --
-- Drops the view of the log's rows.
drop view if exists {rows_view}

-- 0006_drop_done --
-- Drops the table of what is done.
drop table if exists {done}

-- 0007_drop_known --
-- Drops the table of what the receiver is known to have.
drop table if exists {known}

-- grants --
-- What a publisher needs that is not the log's owner.
grant select, update ({status}, {event_type}), delete on {log} to {role}
/
grant select, update on {state} to {role}
/
grant select, insert, update, delete on {batch} to {role}
/
grant select, insert, update, delete on {retry} to {role}
/
grant select, insert, update, delete on {held} to {role}
/
grant select, insert, update, delete on {failed} to {role}
/
grant select, insert, update, delete on {done} to {role}
/
grant select, insert on {notice} to {role}
/
grant select on {tracked} to {role}
/

-- grants_comparing --
-- What a publisher needs beside, that compares states.
grant insert on {log} to {role}
/
grant select, insert, update, delete on {known} to {role}
/

-- unpublished --
-- How many rows are not published.
select count(*) from {log} where {status} in ('N', 'E', 'F')
