{record_id} {among_ids}
/
