-- renew --
-- Makes failed rows new again.
update {log} r set {raw_status} = 'N'
from {wanted_ids}
where {record_id} = wanted.id and {letter} in ('E', 'F')

-- retype --
-- Gives failed rows another event type.
update {log} r set {raw_event_type} = :type
from {wanted_ids}
where {record_id} = wanted.id and {letter} in ('E', 'F')

-- skip --
-- Gives rows up, with the letter W.
update {log} r set {raw_status} = 'W'
from {wanted_ids}
where {record_id} = wanted.id and {letter} in ('N', 'E', 'F')

-- purge --
-- Deletes rows with some letters.
delete from {log} r
using {wanted_ids}
where {record_id} = wanted.id and {letter} in ({letters})
