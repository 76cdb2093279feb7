alter table {log} alter column {event_time} set default (clock_timestamp() at time zone 'UTC')
/
