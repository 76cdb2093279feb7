{record_id} <= :upto
/
