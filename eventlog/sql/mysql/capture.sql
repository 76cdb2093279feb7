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
  {guard_ids}
  insert into {bare_log} ({event_type}, {perpetrator}, {table_name}, {table_key}, {column_name}, {old_value}, {new_value})
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
  insert into {bare_notice} (username, kind, session_id, words)
  values (left(user(), char_length(user()) - locate('@', reverse(user()))), 'capture off', connection_id(), reason);
  set @eventlog_capture = last_insert_id();
end
/
create or replace procedure {capture_on}()
begin
  set @eventlog_capture = null;
end
/

-- drop_routines --
-- Drops the log's routines.
drop procedure if exists {event}
/
drop function if exists {key_value}
/
drop procedure if exists {capture_off}
/
drop procedure if exists {capture_on}
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
      and n.session_id = connection_id()
      and n.words is not null
  ) then
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
{rows}
  end if;
end

-- trigger --
-- Makes a trigger.
lock tables {table} write
/
drop trigger if exists {schema}.{trial}
/
create trigger {schema}.{trial} after {event} on {table} for each row
if false then
{body};
end if
/
drop trigger {schema}.{trial}
/
drop trigger if exists {schema}.{trigger}
/
create trigger {schema}.{trigger} after {event} on {table} for each row
{body}
/
unlock tables
/

-- drop_trigger --
-- Drops a trigger.
drop trigger if exists {schema}.{trigger}

-- record --
-- Puts on record what of a table is tracked.
replace into {tracked} (schema_name, table_name, of_schema, of_table, logged_as, choice)
values ({schema_name}, {own_name}, {of_schema}, {of_table}, {logged_as}, {choice})
