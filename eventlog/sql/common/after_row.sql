{log}.{record_id} > :after
/
