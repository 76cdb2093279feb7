delete from {failed} where record_id {among_ids}
/
