select get_lock(concat('eventlog ', left(sha2(concat(coalesce({schema_text}, ''), '.', {log_text}), 256), 40)), 0)
/
