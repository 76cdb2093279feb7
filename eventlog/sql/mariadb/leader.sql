-- log_lockers --
-- The session that keeps others from reading the log: role, session, application, since when in UTC, the time, whether
-- it is idle in its transaction, its statement (null where it is not ours to see), and the statement that waits for it.
-- A lock that is only asked for keeps them out, too: then those are to blame for which it waits.
select p.user, cast(k.thread_id as char), concat('from ', p.host),
  date_sub(utc_timestamp(6), interval cast(p.time_ms * 1000 as signed) microsecond), utc_timestamp(6),
  case when p.command = 'Sleep' then 1 else 0 end, case when p.id is not null then coalesce(p.info, '') end, w.info
from information_schema.metadata_lock_info k
left join information_schema.processlist p on p.id = k.thread_id
left join (
  select min(info) as info
  from information_schema.processlist
  where state = 'Waiting for table metadata lock' and info not like 'select%' and info not like 'set statement%'
) w on 1 = 1
where k.thread_id <> connection_id() and k.table_schema = {schema_text} and k.table_name in (
    {log_text},
    {batch_text},
    {retry_text},
    {held_text},
    {failed_text},
    {notice_text},
    {known_text},
    {answer_text},
    {try_text},
    {sent_text},
    {resync_text},
    {tracked_text},
    {version_text},
    {state_text}
  )
  and (p.state is null or p.state <> 'Waiting for table metadata lock')
order by case k.lock_mode when 'MDL_EXCLUSIVE' then 0 when 'MDL_SHARED_NO_READ_WRITE' then 1 else 2 end, p.time_ms desc
limit 1
