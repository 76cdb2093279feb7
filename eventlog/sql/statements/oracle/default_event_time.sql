alter table {log} modify ({event_time} default sys_extract_utc(systimestamp))
/
