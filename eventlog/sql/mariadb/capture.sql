-- routines --
-- Makes the routines by which users log events, write keys and switch capture off.
create or replace procedure {event}(
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
  set insert_id = 0;
  insert into {log} ({event_type}, {perpetrator}, {table_name}, {table_key}, {column_name}, {old_value}, {new_value})
  values (an_event_type, left(user(), char_length(user()) - locate('@', reverse(user()))), a_table_name, a_table_key, a_column_name, an_old_value, a_new_value);
end
/
create or replace function {key_value}(value longtext character set utf8mb4) returns longtext character set utf8mb4
deterministic
no sql
begin
  return {quoted};
end
/
create or replace procedure {capture_off}(in reason text character set utf8mb4)
sql security definer
modifies sql data
begin
  insert into {notice} (username, kind, words)
  values (left(user(), char_length(user()) - locate('@', reverse(user()))), 'capture off', concat(connection_id(), ': ', reason));
  set @eventlog_capture = last_insert_id();
end
/
create or replace procedure {capture_on}()
begin
  set @eventlog_capture = null;
end
/

-- capture_body --
-- What a trigger does.
begin
  declare mark longtext default {mark_text};
  declare who longtext character set utf8mb4 default {user};
  if @eventlog_capture is null or not exists (
    select 1 from {notice} n
    where n.notice_id = @eventlog_capture
      and n.kind = 'capture off'
      and n.username = {user}
      and n.words like concat(connection_id(), ':%')
  ) then
    set insert_id = 0;
{rows}
  end if;
end

-- trigger --
-- Makes a trigger.
create or replace trigger {schema}.{trigger} after {event} on {table} for each row
{body}
