delimiter //
create table `hr`.`usr_queue` (
  place bigint auto_increment primary key,
  `login` varchar(20) not null,
  action varchar(10) not null,
  handed bigint, -- the number under which a reader got it last; null: none has
  index (handed)
) engine = InnoDB comment = 'eventlog for connid by login'//
delimiter ;

create table `hr`.`usr_queue_last` (
  handed bigint primary key
);

insert into `hr`.`usr_queue_last` (handed) values (0);

delimiter //
create procedure `hr`.`usr_queue_note`(in changed varchar(20), in done varchar(10))
sql security definer
modifies sql data
begin
  if @@session.insert_id <> 0 then
    signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
  end if;
  insert into `hr`.`usr_queue` (`login`, action) values (changed, done);
end//
delimiter ;

create trigger `hr`.`usr_queue_inserted` after insert on `hr`.`usr` for each row
call `hr`.`usr_queue_note`(new.`login`, 'Insert');

delimiter //
create trigger `hr`.`usr_queue_updated` after update on `hr`.`usr` for each row
begin
  if old.`login` <=> new.`login` then
    call `hr`.`usr_queue_note`(new.`login`, 'Update');
  else
    call `hr`.`usr_queue_note`(old.`login`, 'Delete');
    call `hr`.`usr_queue_note`(new.`login`, 'Insert');
  end if;
end//
delimiter ;

create trigger `hr`.`usr_queue_deleted` after delete on `hr`.`usr` for each row
call `hr`.`usr_queue_note`(old.`login`, 'Delete');

drop trigger if exists `hr`.`usr_queue_inserted`;

drop trigger if exists `hr`.`usr_queue_updated`;

drop trigger if exists `hr`.`usr_queue_deleted`;

drop procedure if exists `hr`.`usr_queue_note`;

drop table if exists `hr`.`usr_queue_last`;

drop table if exists `hr`.`usr_queue`;

