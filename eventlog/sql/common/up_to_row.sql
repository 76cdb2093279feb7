{log}.{record_id} <= :upto
/
