select epoch, leader, leader_since, paused_at, paused_by, pause_reason, cycle_at, cycle_facts, heartbeat_at
from {state}
where one = 1
/
