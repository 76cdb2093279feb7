update {state} set heartbeat_at = {utc_now} where one = 1
/
