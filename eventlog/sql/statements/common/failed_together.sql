select record_id, event_id
from {failed}
where event_id in (select event_id from {failed} where record_id {among_ids})
/
