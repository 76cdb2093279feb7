{record_id}
/
