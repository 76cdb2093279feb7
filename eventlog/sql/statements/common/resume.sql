update {state} set paused_at = null, paused_by = null, pause_reason = null where one = 1
/
