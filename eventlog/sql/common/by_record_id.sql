{log}.{record_id}
/
