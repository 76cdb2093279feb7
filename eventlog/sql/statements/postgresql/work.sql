-- finish --
-- Gives new rows their letter.
update {log} r set {raw_status} = :letter
from {wanted_ids}
where {record_id} = wanted.id and {is_new}

-- remove --
-- Deletes new rows that were handled.
delete from {log} r
using {wanted_ids}
where {record_id} = wanted.id and {is_new}
