drop procedure if exists `indirect`.`eventlog_event`;

delimiter //
create procedure `indirect`.`eventlog_event`(
  in an_event_type integer,
  in a_table_name text character set utf8mb4,
  in a_table_key longtext character set utf8mb4,
  in a_column_name text character set utf8mb4,
  in an_old_value longtext character set utf8mb4,
  in a_new_value longtext character set utf8mb4
)
sql security definer
modifies sql data
begin
  if @@session.insert_id <> 0 then
    signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
  end if;
  insert into `eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
  values (an_event_type, left(user(), char_length(user()) - locate('@', reverse(user()))), a_table_name, a_table_key, a_column_name, an_old_value, a_new_value);
end//
delimiter ;

drop function if exists `indirect`.`eventlog_key_value`;

delimiter //
create function `indirect`.`eventlog_key_value`(value longtext character set utf8mb4) returns longtext character set utf8mb4
deterministic
no sql
begin
  return case when value regexp '[,;''+"=\\<>]' then concat('"', replace(replace(value, '\', '\\'), '"', '\"'), '"') else value end;
end//
delimiter ;

drop procedure if exists `indirect`.`eventlog_capture_off`;

delimiter //
create procedure `indirect`.`eventlog_capture_off`(in reason text character set utf8mb4)
sql security definer
modifies sql data
begin
  insert into `eventlog_notice` (username, kind, session_id, words)
  values (left(user(), char_length(user()) - locate('@', reverse(user()))), 'capture off', connection_id(), reason);
  set @eventlog_capture = last_insert_id();
end//
delimiter ;

drop procedure if exists `indirect`.`eventlog_capture_on`;

delimiter //
create procedure `indirect`.`eventlog_capture_on`()
begin
  set @eventlog_capture = null;
end//
delimiter ;

lock tables `indirect`.`usr` write;

drop trigger if exists `indirect`.`eventlog$usr$insert$trial`;

delimiter //
create trigger `indirect`.`eventlog$usr$insert$trial` after insert on `indirect`.`usr` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`born` is not null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', null, if(new.`born` = 0, '0000-00-00 00:00:00', convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp(new.`born`) second using utf8mb4)));
    end if;
    if new.`photo` is not null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'photo', null, if(new.`photo` is null, null, coalesce(convert(replace(to_base64(new.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')));
    end if;
    if new.`amount` is not null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'amount', null, convert(new.`amount` + 0 using utf8mb4));
    end if;
    if new.`bio` is not null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'bio', null, convert(new.`bio` using utf8mb4));
    end if;
    if new.`born` is null and new.`photo` is null and new.`amount` is null and new.`bio` is null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', null, null);
    end if;
  end if;
end;
end if//
delimiter ;

drop trigger `indirect`.`eventlog$usr$insert$trial`;

drop trigger if exists `indirect`.`eventlog$usr$insert`;

delimiter //
create trigger `indirect`.`eventlog$usr$insert` after insert on `indirect`.`usr` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`born` is not null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', null, if(new.`born` = 0, '0000-00-00 00:00:00', convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp(new.`born`) second using utf8mb4)));
    end if;
    if new.`photo` is not null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'photo', null, if(new.`photo` is null, null, coalesce(convert(replace(to_base64(new.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')));
    end if;
    if new.`amount` is not null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'amount', null, convert(new.`amount` + 0 using utf8mb4));
    end if;
    if new.`bio` is not null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'bio', null, convert(new.`bio` using utf8mb4));
    end if;
    if new.`born` is null and new.`photo` is null and new.`amount` is null and new.`bio` is null then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
      values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', null, null);
    end if;
  end if;
end//
delimiter ;

unlock tables;

lock tables `indirect`.`usr` write;

drop trigger if exists `indirect`.`eventlog$usr$update$trial`;

delimiter //
create trigger `indirect`.`eventlog$usr$update$trial` after update on `indirect`.`usr` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (cast(convert(old.`site` using utf8mb4) as binary) <=> cast(convert(new.`site` using utf8mb4) as binary)) or not (old.`idu` <=> new.`idu`) then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (4, who, 'usr', concat('site=', case when convert(old.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`site` using utf8mb4) end, '+idu=', convert(old.`idu` + 0 using utf8mb4)));
      if new.`born` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', null, if(new.`born` = 0, '0000-00-00 00:00:00', convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp(new.`born`) second using utf8mb4)));
      end if;
      if new.`photo` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'photo', null, if(new.`photo` is null, null, coalesce(convert(replace(to_base64(new.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')));
      end if;
      if new.`amount` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'amount', null, convert(new.`amount` + 0 using utf8mb4));
      end if;
      if new.`bio` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'bio', null, convert(new.`bio` using utf8mb4));
      end if;
      if new.`born` is null and new.`photo` is null and new.`amount` is null and new.`bio` is null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', null, null);
      end if;
    else
      if not (old.`born` <=> new.`born`) then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', if(old.`born` = 0, '0000-00-00 00:00:00', convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp(old.`born`) second using utf8mb4)), if(new.`born` = 0, '0000-00-00 00:00:00', convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp(new.`born`) second using utf8mb4)));
      end if;
      if not (cast(if(old.`photo` is null, null, coalesce(convert(replace(to_base64(old.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')) as binary) <=> cast(if(new.`photo` is null, null, coalesce(convert(replace(to_base64(new.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')) as binary)) then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'photo', if(old.`photo` is null, null, coalesce(convert(replace(to_base64(old.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')), if(new.`photo` is null, null, coalesce(convert(replace(to_base64(new.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')));
      end if;
      if not (old.`amount` <=> new.`amount`) then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'amount', convert(old.`amount` + 0 using utf8mb4), convert(new.`amount` + 0 using utf8mb4));
      end if;
      if not (cast(convert(old.`bio` using utf8mb4) as binary) <=> cast(convert(new.`bio` using utf8mb4) as binary)) then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'bio', convert(old.`bio` using utf8mb4), convert(new.`bio` using utf8mb4));
      end if;
    end if;
  end if;
end;
end if//
delimiter ;

drop trigger `indirect`.`eventlog$usr$update$trial`;

drop trigger if exists `indirect`.`eventlog$usr$update`;

delimiter //
create trigger `indirect`.`eventlog$usr$update` after update on `indirect`.`usr` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (cast(convert(old.`site` using utf8mb4) as binary) <=> cast(convert(new.`site` using utf8mb4) as binary)) or not (old.`idu` <=> new.`idu`) then
      insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
      values (4, who, 'usr', concat('site=', case when convert(old.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`site` using utf8mb4) end, '+idu=', convert(old.`idu` + 0 using utf8mb4)));
      if new.`born` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', null, if(new.`born` = 0, '0000-00-00 00:00:00', convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp(new.`born`) second using utf8mb4)));
      end if;
      if new.`photo` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'photo', null, if(new.`photo` is null, null, coalesce(convert(replace(to_base64(new.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')));
      end if;
      if new.`amount` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'amount', null, convert(new.`amount` + 0 using utf8mb4));
      end if;
      if new.`bio` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'bio', null, convert(new.`bio` using utf8mb4));
      end if;
      if new.`born` is null and new.`photo` is null and new.`amount` is null and new.`bio` is null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (1, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', null, null);
      end if;
    else
      if not (old.`born` <=> new.`born`) then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'born', if(old.`born` = 0, '0000-00-00 00:00:00', convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp(old.`born`) second using utf8mb4)), if(new.`born` = 0, '0000-00-00 00:00:00', convert(timestamp'1970-01-01 00:00:00' + interval unix_timestamp(new.`born`) second using utf8mb4)));
      end if;
      if not (cast(if(old.`photo` is null, null, coalesce(convert(replace(to_base64(old.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')) as binary) <=> cast(if(new.`photo` is null, null, coalesce(convert(replace(to_base64(new.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')) as binary)) then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'photo', if(old.`photo` is null, null, coalesce(convert(replace(to_base64(old.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')), if(new.`photo` is null, null, coalesce(convert(replace(to_base64(new.`photo`), char(10), '') using utf8mb4), '(over max_allowed_packet)')));
      end if;
      if not (old.`amount` <=> new.`amount`) then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'amount', convert(old.`amount` + 0 using utf8mb4), convert(new.`amount` + 0 using utf8mb4));
      end if;
      if not (cast(convert(old.`bio` using utf8mb4) as binary) <=> cast(convert(new.`bio` using utf8mb4) as binary)) then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'bio', convert(old.`bio` using utf8mb4), convert(new.`bio` using utf8mb4));
      end if;
    end if;
  end if;
end//
delimiter ;

unlock tables;

lock tables `indirect`.`usr` write;

drop trigger if exists `indirect`.`eventlog$usr$delete$trial`;

delimiter //
create trigger `indirect`.`eventlog$usr$delete$trial` after delete on `indirect`.`usr` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (4, who, 'usr', concat('site=', case when convert(old.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`site` using utf8mb4) end, '+idu=', convert(old.`idu` + 0 using utf8mb4)));
  end if;
end;
end if//
delimiter ;

drop trigger `indirect`.`eventlog$usr$delete$trial`;

drop trigger if exists `indirect`.`eventlog$usr$delete`;

delimiter //
create trigger `indirect`.`eventlog$usr$delete` after delete on `indirect`.`usr` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`)
    values (4, who, 'usr', concat('site=', case when convert(old.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`site` using utf8mb4) end, '+idu=', convert(old.`idu` + 0 using utf8mb4)));
  end if;
end//
delimiter ;

unlock tables;

lock tables `indirect`.`usr_phone` write;

drop trigger if exists `indirect`.`eventlog$usr_phone$usr$insert$trial`;

delimiter //
create trigger `indirect`.`eventlog$usr_phone$usr$insert$trial` after insert on `indirect`.`usr_phone` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`idu` is not null and new.`site` is not null then
      if new.`phoneno` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', null, convert(new.`phoneno` using utf8mb4));
      end if;
    end if;
  end if;
end;
end if//
delimiter ;

drop trigger `indirect`.`eventlog$usr_phone$usr$insert$trial`;

drop trigger if exists `indirect`.`eventlog$usr_phone$usr$insert`;

delimiter //
create trigger `indirect`.`eventlog$usr_phone$usr$insert` after insert on `indirect`.`usr_phone` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if new.`idu` is not null and new.`site` is not null then
      if new.`phoneno` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', null, convert(new.`phoneno` using utf8mb4));
      end if;
    end if;
  end if;
end//
delimiter ;

unlock tables;

lock tables `indirect`.`usr_phone` write;

drop trigger if exists `indirect`.`eventlog$usr_phone$usr$update$trial`;

delimiter //
create trigger `indirect`.`eventlog$usr_phone$usr$update$trial` after update on `indirect`.`usr_phone` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`idu` <=> new.`idu`) or not (cast(convert(old.`site` using utf8mb4) as binary) <=> cast(convert(new.`site` using utf8mb4) as binary)) then
      if exists (select 1 from `indirect`.`usr` p where p.`idu` = old.`idu` and p.`site` = old.`site`) then
        if old.`phoneno` is not null then
          insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('site=', case when convert(old.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`site` using utf8mb4) end, '+idu=', convert(old.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', convert(old.`phoneno` using utf8mb4), null);
        end if;
      end if;
      if new.`idu` is not null and new.`site` is not null then
        if new.`phoneno` is not null then
          insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', null, convert(new.`phoneno` using utf8mb4));
        end if;
      end if;
    else
      if new.`idu` is not null and new.`site` is not null then
        if not (cast(convert(old.`phoneno` using utf8mb4) as binary) <=> cast(convert(new.`phoneno` using utf8mb4) as binary)) then
          insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', convert(old.`phoneno` using utf8mb4), convert(new.`phoneno` using utf8mb4));
        end if;
      end if;
    end if;
  end if;
end;
end if//
delimiter ;

drop trigger `indirect`.`eventlog$usr_phone$usr$update$trial`;

drop trigger if exists `indirect`.`eventlog$usr_phone$usr$update`;

delimiter //
create trigger `indirect`.`eventlog$usr_phone$usr$update` after update on `indirect`.`usr_phone` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if not (old.`idu` <=> new.`idu`) or not (cast(convert(old.`site` using utf8mb4) as binary) <=> cast(convert(new.`site` using utf8mb4) as binary)) then
      if exists (select 1 from `indirect`.`usr` p where p.`idu` = old.`idu` and p.`site` = old.`site`) then
        if old.`phoneno` is not null then
          insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('site=', case when convert(old.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`site` using utf8mb4) end, '+idu=', convert(old.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', convert(old.`phoneno` using utf8mb4), null);
        end if;
      end if;
      if new.`idu` is not null and new.`site` is not null then
        if new.`phoneno` is not null then
          insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', null, convert(new.`phoneno` using utf8mb4));
        end if;
      end if;
    else
      if new.`idu` is not null and new.`site` is not null then
        if not (cast(convert(old.`phoneno` using utf8mb4) as binary) <=> cast(convert(new.`phoneno` using utf8mb4) as binary)) then
          insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
          values (2, who, 'usr', concat('site=', case when convert(new.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(new.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(new.`site` using utf8mb4) end, '+idu=', convert(new.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', convert(old.`phoneno` using utf8mb4), convert(new.`phoneno` using utf8mb4));
        end if;
      end if;
    end if;
  end if;
end//
delimiter ;

unlock tables;

lock tables `indirect`.`usr_phone` write;

drop trigger if exists `indirect`.`eventlog$usr_phone$usr$delete$trial`;

delimiter //
create trigger `indirect`.`eventlog$usr_phone$usr$delete$trial` after delete on `indirect`.`usr_phone` for each row
if false then
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if exists (select 1 from `indirect`.`usr` p where p.`idu` = old.`idu` and p.`site` = old.`site`) then
      if old.`phoneno` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(old.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`site` using utf8mb4) end, '+idu=', convert(old.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', convert(old.`phoneno` using utf8mb4), null);
      end if;
    end if;
  end if;
end;
end if//
delimiter ;

drop trigger `indirect`.`eventlog$usr_phone$usr$delete$trial`;

drop trigger if exists `indirect`.`eventlog$usr_phone$usr$delete`;

delimiter //
create trigger `indirect`.`eventlog$usr_phone$usr$delete` after delete on `indirect`.`usr_phone` for each row
begin
  declare mark longtext default 'eventlog track {"children": ["usr_phone.phoneno"], "insert": 1, "update": 2}';
  declare who longtext character set utf8mb4 default left(user(), char_length(user()) - locate('@', reverse(user())));
  if @eventlog_capture is null or not exists (
    select 1 from `indirect`.`eventlog_notice` n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = left(user(), char_length(user()) - locate('@', reverse(user())))
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
    if exists (select 1 from `indirect`.`usr` p where p.`idu` = old.`idu` and p.`site` = old.`site`) then
      if old.`phoneno` is not null then
        insert into `indirect`.`eventlog` (`event_type`, `perpetrator`, `table_name`, `table_key`, `column_name`, `old_value`, `new_value`)
        values (2, who, 'usr', concat('site=', case when convert(old.`site` using utf8mb4) regexp '[,;''+"=\\<>]' then concat('"', replace(replace(convert(old.`site` using utf8mb4), '\', '\\'), '"', '\"'), '"') else convert(old.`site` using utf8mb4) end, '+idu=', convert(old.`idu` + 0 using utf8mb4)), 'usr_phone.phoneno', convert(old.`phoneno` using utf8mb4), null);
      end if;
    end if;
  end if;
end//
delimiter ;

unlock tables;

