update {state} set epoch = epoch + 1, leader = :leader, leader_session = :session_id, leader_since = {utc_now} where one = 1
/
