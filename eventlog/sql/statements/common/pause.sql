update {state} set paused_at = {utc_now}, paused_by = :who, pause_reason = :reason where one = 1
/
