-- session --
-- What every new session begins with, so that no text depends on its settings.
set time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'

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
