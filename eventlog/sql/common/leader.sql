-- leader_session --
-- The session that the last leader noted.
select leader_session from {state} where one = 1

-- begin_epoch --
-- Begins the epoch of a new leader.
update {state} set epoch = epoch + 1, leader = :leader, leader_session = :session_id, leader_since = {utc_now} where one = 1
