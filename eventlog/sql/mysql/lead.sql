select get_lock(concat('eventlog ', sha1(concat(coalesce({schema_text}, ''), '.', {log_text}))), 0)
/
