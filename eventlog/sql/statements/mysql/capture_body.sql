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
    if @@session.insert_id <> 0 then
      signal sqlstate '45000' set message_text = 'insert_id is set, from which the event log would number its rows';
    end if;
{rows}
  end if;
end
/
