select w.object_hash, w.event_id, w.record_ids
from {retry} w
where w.object_hash in (select h.object_hash from {held} h where h.spelling_hash = :spelling_hash)
/
