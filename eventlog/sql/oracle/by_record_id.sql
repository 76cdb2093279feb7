decode({log}.{status}, 'N', {log}.{record_id})
/
