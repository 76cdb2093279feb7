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
    set insert_id = 0;
{rows}
  end if;
end

-- trigger --
-- Makes a trigger.
create or replace trigger {schema}.{trigger} after {event} on {table} for each row
{body}
