decode({status}, 'N', {record_id})
/
