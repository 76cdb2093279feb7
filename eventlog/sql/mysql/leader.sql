-- session --
-- What every new session begins with, so that no text depends on its settings.
set time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'

-- own_session --
-- What our sessions begin with besides. A server may be set to protect people from accidents: it cuts results and
-- refuses statements without a key. It may also show what is not committed, what was deleted, and another row than the
-- one without a number, cut long texts of views or what is sorted by, and begin each transaction at the end of another.
-- In the texts of views are no words of a language.
set sql_select_limit = 18446744073709551615, sql_safe_updates = 0, sql_big_selects = 1, sql_auto_is_null = 0,
  group_concat_max_len = 67108864, max_sort_length = 8192, div_precision_increment = 4, default_week_format = 0,
  lc_time_names = 'en_US', completion_type = 'NO_CHAIN' /*M!100304 , system_versioning_asof = default */
/
set session transaction isolation level repeatable read

-- user --
-- The user as whom we are connected.
select left(user(), char_length(user()) - locate('@', reverse(user())))

-- session_id --
-- The name of our own session, as `lock_holders` tells it.
select cast(connection_id() as char)

-- lead --
-- Takes the lock of the one active publisher; whether we have it.
select get_lock(concat('eventlog ', left(sha2(
  case @@lower_case_table_names
    when 0 then concat(coalesce({schema_text}, ''), '.', {log_text})
    else lower(concat(coalesce({schema_text}, ''), '.', {log_text}))
  end, 256), 40)), 0)

-- resign --
-- Gives the lock back.
do release_all_locks()

-- lock_holders --
-- Who holds the lock: role, session, application.
select p.user, cast(h.id as char), concat('from ', p.host)
from (
  select is_used_lock(concat('eventlog ', left(sha2(
    case @@lower_case_table_names
      when 0 then concat(coalesce({schema_text}, ''), '.', {log_text})
      else lower(concat(coalesce({schema_text}, ''), '.', {log_text}))
    end, 256), 40))) as id
) h
left join information_schema.processlist p on p.id = h.id
where h.id is not null

-- stand_by --
-- Takes a lock that shows a standby, which one session alone can have; whether we have it.
select get_lock(concat('eventlog ', left(sha2(
  case @@lower_case_table_names
    when 0 then concat(coalesce({schema_text}, ''), '.', {log_text})
    else lower(concat(coalesce({schema_text}, ''), '.', {log_text}))
  end, 256), 40), ' ', {lock_kind}{lock_place}), 0)

-- end_stand_by --
-- Gives the locks of a standby back.
do release_all_locks()

-- standbys --
-- The standbys: whether each could lead, role, session, application.
select floor(h.part / 10), p.user, cast(h.id as char), concat('from ', p.host)
from (
  select k.kind * 10 + n.place as part, is_used_lock(concat('eventlog ', left(sha2(
  case @@lower_case_table_names
    when 0 then concat(coalesce({schema_text}, ''), '.', {log_text})
    else lower(concat(coalesce({schema_text}, ''), '.', {log_text}))
  end, 256), 40), ' ', k.kind * 10 + n.place)) as id
  from (select 1702257261 as kind union all select 1702257262) k
  cross join (
    select 0 as place union all select 1 union all select 2 union all select 3 union all select 4
    union all select 5 union all select 6 union all select 7 union all select 8
  ) n
) h
left join information_schema.processlist p on p.id = h.id
where h.id is not null
order by h.id

-- log_lockers --
-- The session that keeps others from reading the log: role, session, application, since when in UTC, the time, whether
-- it is idle in its transaction, its statement (null where it is not ours to see), and the statement that waits for it.
-- A lock that is only asked for keeps them out, too: then those are to blame for which it waits.
select t.processlist_user, cast(t.processlist_id as char), concat('from ', t.processlist_host),
  date_sub(utc_timestamp(6), interval t.processlist_time second), utc_timestamp(6),
  case when t.processlist_command = 'Sleep' then 1 else 0 end, coalesce(t.processlist_info, ''), w.info
from performance_schema.metadata_locks k
join performance_schema.threads t on t.thread_id = k.owner_thread_id
left join (
  select min(t.processlist_info) as info
  from performance_schema.metadata_locks p
  join performance_schema.threads t on t.thread_id = p.owner_thread_id
  where p.lock_status = 'PENDING' and p.lock_type in ('EXCLUSIVE', 'SHARED_NO_READ_WRITE')
    and p.object_schema = {schema_text}
) w on 1 = 1
where t.processlist_id <> connection_id() and k.object_type = 'TABLE' and k.lock_status = 'GRANTED'
  and k.object_schema = {schema_text} and k.object_name in (
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
  and (t.processlist_state is null or t.processlist_state <> 'Waiting for table metadata lock')
order by case k.lock_type when 'EXCLUSIVE' then 0 when 'SHARED_NO_READ_WRITE' then 1 else 2 end, t.processlist_time desc
limit 1
