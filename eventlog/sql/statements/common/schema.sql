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
grant select, insert on {notice} to {role}
/
grant select on {tracked} to {role}
/

-- unpublished --
-- How many rows are not published.
select count(*) from {log} where {status} in ('N', 'E', 'F')
