select object_hash, first_id, event_id, object_table, object_key, record_ids
from {retry}
/
