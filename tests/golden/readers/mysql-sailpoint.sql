-- A trigger may not write to the table from which a row is being deleted. So what readers see is a view of one table:
-- a row that waits there refers to the one that is seen, and its foreign key lets it be seen once that is deleted.
-- Places descend. What waits comes before what is seen in each index, so a delete that goes on does not meet it.
create table `hr`.`usr_delta_waiting` (
  `login` varchar(20) not null,
  place bigint not null,
  action varchar(10) not null,
  was_there tinyint not null default 0, -- when a change was noted last
  seen_identity varchar(20),
  seen_place bigint,
  primary key (`login`, place),
  foreign key (seen_identity, seen_place) references `hr`.`usr_delta_waiting` (`login`, place) on delete set null
) engine = InnoDB comment = 'eventlog for sailpoint by login';

create table `hr`.`usr_delta_last` (
  `login` varchar(20) primary key,
  place bigint not null
) engine = InnoDB;

create algorithm = merge sql security definer view `hr`.`usr_delta` as
select w.`login`, w.action from `hr`.`usr_delta_waiting` w where w.seen_place is null;

delimiter //
-- It only locks rows that there are: a gap that is locked would keep writers of other objects waiting.
create procedure `hr`.`usr_delta_note`(in changed varchar(20), in done varchar(10))
sql security definer
modifies sql data
begin
  declare last_place bigint;
  declare was_noted tinyint;
  declare waits_for bigint;
  insert into `hr`.`usr_delta_last` (`login`, place) values (changed, 0) on duplicate key update place = `hr`.`usr_delta_last`.place;
  select l.place into last_place from `hr`.`usr_delta_last` l where l.`login` = changed for update;
  insert into `hr`.`usr_delta_waiting` (`login`, place, action) values (changed, last_place, done)
  on duplicate key update was_there = 1, action = if(`hr`.`usr_delta_waiting`.seen_place is null, `hr`.`usr_delta_waiting`.action, done);
  select w.was_there, w.seen_place into was_noted, waits_for
  from `hr`.`usr_delta_waiting` w
  where w.`login` = changed and w.place = last_place
  for update;
  if was_noted and waits_for is null then
    insert into `hr`.`usr_delta_waiting` (`login`, place, action, seen_identity, seen_place)
    values (changed, last_place - 1, done, changed, last_place);
    update `hr`.`usr_delta_last` l set l.place = last_place - 1 where l.`login` = changed;
  end if;
end//
delimiter ;

create trigger `hr`.`usr_delta_inserted` after insert on `hr`.`usr` for each row
call `hr`.`usr_delta_note`(new.`login`, 'Insert');

delimiter //
create trigger `hr`.`usr_delta_updated` after update on `hr`.`usr` for each row
begin
  if old.`login` <=> new.`login` then
    call `hr`.`usr_delta_note`(new.`login`, 'Update');
  else
    call `hr`.`usr_delta_note`(old.`login`, 'Delete');
    call `hr`.`usr_delta_note`(new.`login`, 'Insert');
  end if;
end//
delimiter ;

create trigger `hr`.`usr_delta_deleted` after delete on `hr`.`usr` for each row
call `hr`.`usr_delta_note`(old.`login`, 'Delete');

drop trigger if exists `hr`.`usr_delta_inserted`;

drop trigger if exists `hr`.`usr_delta_updated`;

drop trigger if exists `hr`.`usr_delta_deleted`;

drop procedure if exists `hr`.`usr_delta_note`;

drop view if exists `hr`.`usr_delta`;

drop table if exists `hr`.`usr_delta_last`;

drop table if exists `hr`.`usr_delta_waiting`;

