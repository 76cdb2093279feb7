-- session --
-- What every new session begins with, so that no text depends on its settings.
alter session set
  time_zone = '+00:00'
  nls_date_format = 'YYYY-MM-DD HH24:MI:SS'
  nls_timestamp_format = 'YYYY-MM-DD HH24:MI:SS.FF9'
  nls_timestamp_tz_format = 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'
  nls_numeric_characters = '. '
  nls_comp = 'BINARY'
  nls_sort = 'BINARY'

-- own_session --
-- Nothing besides.

-- user --
-- The user as whom we are connected.
select sys_context('USERENV', 'SESSION_USER') from dual

-- session_id --
-- The name of our own session, as `lock_holders` tells it.
select sys_context('USERENV', 'SESSIONID') from dual

-- lead --
-- Takes the lock of the one active publisher; whether we have it.
select one from {lock} for update skip locked

-- resign --
-- Gives the lock back.
rollback

-- hold_lock --
-- Asks for a lock of the session itself, which outlives transactions.
begin {leadership}.hold; end;

-- held_by_session --
-- Whether the session itself has the lock, null where it cannot.
select {leadership}.held from dual

-- lock_holders --
-- Who holds the lock: role, session, application.
select s.username, to_char(s.audsid), 'program ' || s.program
from v$session s
where s.sid in (
  select l.sid from v$lock l where l.type = 'UL' and l.id1 = {lock_number} and l.lmode = 6
  union all
  select o.session_id
  from v$locked_object o
  join all_objects t on t.object_id = o.object_id
  where t.owner = {schema_text} and t.object_name = {lock_text}
)

-- log_lockers --
-- The session that keeps others from writing the log: role, session, application, since when in UTC, the time, whether
-- it is idle in its transaction, its statement, and the statement that waits for it. No session keeps others from reading.
select s.username, to_char(s.audsid), 'program ' || s.program,
  cast(sys_extract_utc(systimestamp) as timestamp) - numtodsinterval(l.ctime, 'SECOND'),
  cast(sys_extract_utc(systimestamp) as timestamp), case when s.status = 'INACTIVE' then 1 else 0 end, q.sql_text, null
from v$lock l
join v$session s on s.sid = l.sid
join all_objects o on o.object_id = l.id1
left join v$sql q on q.sql_id = s.sql_id and q.child_number = s.sql_child_number
where l.type = 'TM' and l.lmode = 6 and o.owner = {schema_text} and o.object_name = {log_text}
