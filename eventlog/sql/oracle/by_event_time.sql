decode({log}.{status}, 'N', {log}.{event_time}), decode({log}.{status}, 'N', {log}.{record_id})
/
