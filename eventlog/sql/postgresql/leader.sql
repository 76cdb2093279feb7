-- session --
-- What every new session begins with, so that no text depends on its settings.
set time zone 'UTC'
/
set datestyle to 'ISO, YMD'
/
set intervalstyle to 'postgres'
/
set bytea_output to 'hex'
/
set extra_float_digits to 1
/
set quote_all_identifiers to off
/

-- own_session --
-- What our sessions begin with besides. First how statements and values are read, then texts that views make, then
-- transactions that name no level, then plans. A session keeps the limits of time and memory that it is given, the
-- synchronous commit, and lc_monetary, which decides what a value of type money means.
select pg_catalog.set_config('client_encoding', pg_catalog.current_setting('server_encoding'), false)
/
set standard_conforming_strings to on
/
set array_nulls to on
/
set transform_null_equals to off
/
set xmloption to content
/
set xmlbinary to base64
/
set gin_fuzzy_search_limit to 0
/
set default_transaction_isolation to 'read committed'
/
set plan_cache_mode to auto
/
set enable_nestloop to on
/
set enable_hashjoin to on
/
set enable_mergejoin to on
/
set enable_indexscan to on
/
set enable_bitmapscan to on
/
set enable_seqscan to on
/
set enable_sort to on
/
set enable_hashagg to on
/
set join_collapse_limit to 8
/
set from_collapse_limit to 8
/
-- compiling takes longer than what we ask for
set jit to off
/
-- by this a publisher sees whether its session is still the one that it began
set eventlog.session to 'kept'
/

-- user --
-- The user as whom we are connected.
select session_user

-- session_id --
-- The name of our own session, as `lock_holders` tells it.
select cast(pg_backend_pid() as text)

-- lead --
-- Takes the lock of the one active publisher; whether we have it.
select pg_try_advisory_lock((1702257260 :: bigint << 32) | cast(cast('{log}' as regclass) as oid) :: bigint)

-- resign --
-- Gives the lock back.
select pg_advisory_unlock_all()

-- lock_holders --
-- Who holds the lock: role, session, application.
select a.usename, cast(l.pid as text), 'application ' || nullif(a.application_name, '')
from pg_catalog.pg_locks l
left join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.objsubid = 1
  and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
  and l.classid = 1702257260 and l.objid = cast('{log}' as regclass)

-- stand_by --
-- Takes a lock that shows a standby, which sessions share; whether we have it.
select pg_try_advisory_lock_shared(({lock_kind} :: bigint << 32) | cast(cast('{log}' as regclass) as oid) :: bigint)

-- end_stand_by --
-- Gives the locks of a standby back.
select pg_advisory_unlock_all()

-- standbys --
-- The standbys: whether each could lead, role, session, application.
select cast(l.classid as text), a.usename, cast(l.pid as text), 'application ' || nullif(a.application_name, '')
from pg_catalog.pg_locks l
left join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.mode = 'ShareLock'
  and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
  and l.classid in (1702257261, 1702257262) and l.objid = cast('{log}' as regclass)
order by l.pid
limit 100

-- notifies --
-- Whether the triggers wake a publisher that sleeps.
select current_setting('max_prepared_transactions') = '0'

-- announce --
-- Tells the triggers that we sleep.
select pg_advisory_lock({wake_class}, {wake_key})

-- rise --
-- Tells the triggers that we sleep no longer.
select pg_advisory_unlock({wake_class}, {wake_key})

-- see_all --
-- Makes an error of what would be hidden from a session of a log.
set row_security to off

-- pin_path --
-- Has such a session find only the server's own by bare names.
select pg_catalog.set_config('eventlog.path', pg_catalog.current_setting('search_path'), false)
/
select pg_catalog.set_config('eventlog.places', pg_catalog.current_schemas(false)::text, false)
/
set search_path to pg_catalog, pg_temp
/

-- free_path --
-- Has a transaction find again what it would have found without that.
select pg_catalog.set_config('search_path', path, true)
from pg_catalog.current_setting('eventlog.path', true) as path where path <> ''

-- limit_locks --
-- Has the statements of a transaction wait for locks so many seconds at most.
set local lock_timeout to '{seconds}s'

-- limit_statements --
-- Has the statements of a transaction take so many seconds at most.
set local statement_timeout to '{seconds}s'

-- log_lockers --
-- The session that keeps others from reading the log: role, session, application, since when in UTC, the time, whether
-- it is idle in its transaction, its statement (null where it is not ours to see), and the statement that waits for it.
-- A lock that is only asked for keeps them out, too: then those are to blame for which it waits.
with locks (pid, granted) as (
  select l.pid, l.granted
  from pg_catalog.pg_locks l
  where l.locktype = 'relation' and l.mode = 'AccessExclusiveLock'
    and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
    and l.relation in (
      pg_catalog.to_regclass('{log}'),
      pg_catalog.to_regclass('{batch}'),
      pg_catalog.to_regclass('{retry}'),
      pg_catalog.to_regclass('{held}'),
      pg_catalog.to_regclass('{failed}'),
      pg_catalog.to_regclass('{notice}'),
      pg_catalog.to_regclass('{known}'),
      pg_catalog.to_regclass('{answer}'),
      pg_catalog.to_regclass('{try}'),
      pg_catalog.to_regclass('{sent}'),
      pg_catalog.to_regclass('{resync}'),
      pg_catalog.to_regclass('{tracked}'),
      pg_catalog.to_regclass('{version}'),
      pg_catalog.to_regclass('{slot}'),
      pg_catalog.to_regclass('{state}')
    )
), holders (pid, waiting_pid) as (
  select l.pid, null from locks l where l.granted
  union all
  select b.pid, l.pid from locks l cross join lateral unnest(pg_catalog.pg_blocking_pids(l.pid)) as b (pid)
  where not l.granted
)
select a.usename, cast(h.pid as text), 'application ' || nullif(a.application_name, ''),
  a.xact_start at time zone 'UTC', now() at time zone 'UTC', case when a.state like 'idle%' then 1 else 0 end,
  case when a.state is not null then a.query end, case when w.state is not null then w.query end
from holders h
left join pg_catalog.pg_stat_activity a on a.pid = h.pid
left join pg_catalog.pg_stat_activity w on w.pid = h.waiting_pid
order by case when h.waiting_pid is null then 0 when a.wait_event_type = 'Lock' then 2 else 1 end, a.xact_start
limit 1
