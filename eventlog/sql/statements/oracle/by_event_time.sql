decode({status}, 'N', {event_time}), decode({status}, 'N', {record_id})
/
