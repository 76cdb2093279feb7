in (select id from {wanted_ids})
/
