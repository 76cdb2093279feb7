{log}.{event_time}, {log}.{record_id}
/
