-- leader_session --
-- The session that the last leader noted.
select leader_session from {state} where one = 1

-- begin_epoch --
-- Begins the epoch of a new leader.
update {state} set epoch = epoch + 1, leader = :leader, leader_session = :session_id, leader_since = {utc_now} where one = 1

-- see_all --
-- Makes an error of what would be hidden from a session of a log: nothing is.

-- pin_path --
-- Has such a session find only the server's own by bare names: it does.

-- free_path --
-- Has a transaction find again what it would have found without that.

-- stand_by --
-- Takes a lock that shows a standby, where sessions have such locks; whether we have it.
select 1 from {state} where one = 1

-- end_stand_by --
-- Gives the locks of a standby back.
select 1 from {state} where one = 1

-- standbys --
-- The standbys: whether each could lead, role, session, application.
select null, null, null, null from {state} where one = 0

-- limit_locks --
-- Has the statements of a transaction wait for locks so many seconds at most, where a transaction can have that.

-- limit_statements --
-- Has the statements of a transaction take so many seconds at most, where a transaction can have that.

-- touch_log --
-- Nothing, unless another session keeps others from reading the log.
select null from {log} r, {state} s where 1 = 0
