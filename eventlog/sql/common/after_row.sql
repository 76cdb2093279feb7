{record_id} > :after
/
