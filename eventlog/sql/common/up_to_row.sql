{log}.{record_id} <= :until
/
