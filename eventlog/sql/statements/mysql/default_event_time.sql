alter table {log} alter column {event_time} set default (utc_timestamp(6))
/
