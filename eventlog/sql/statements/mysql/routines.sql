drop procedure if exists {event}
/
create procedure {event}(
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
  insert into {log} ({event_type}, {perpetrator}, {table_name}, {table_key}, {column_name}, {old_value}, {new_value})
  values (an_event_type, left(user(), char_length(user()) - locate('@', reverse(user()))), a_table_name, a_table_key, a_column_name, an_old_value, a_new_value);
end
/
drop function if exists {key_value}
/
create function {key_value}(value longtext character set utf8mb4) returns longtext character set utf8mb4
deterministic
no sql
begin
  return {quoted};
end
/
drop procedure if exists {capture_off}
/
create procedure {capture_off}(in reason text character set utf8mb4)
sql security definer
modifies sql data
begin
  insert into {notice} (username, kind, words)
  values (left(user(), char_length(user()) - locate('@', reverse(user()))), 'capture off', concat(connection_id(), ': ', reason));
  set @eventlog_capture = last_insert_id();
end
/
drop procedure if exists {capture_on}
/
create procedure {capture_on}()
begin
  set @eventlog_capture = null;
end
/
