-- log_bytes --
-- The bytes of the log and the tables next to it, with their indexes.
select cast(sum(pg_catalog.pg_total_relation_size(c.oid)) as bigint)
from pg_catalog.pg_class c
where c.oid in (
  pg_catalog.to_regclass('{log}'),
  pg_catalog.to_regclass('{batch}'),
  pg_catalog.to_regclass('{retry}'),
  pg_catalog.to_regclass('{held}'),
  pg_catalog.to_regclass('{failed}'),
  pg_catalog.to_regclass('{notice}'),
  pg_catalog.to_regclass('{known}'),
  pg_catalog.to_regclass('{answer}'),
  pg_catalog.to_regclass('{try}'),
  pg_catalog.to_regclass('{sent}'),
  pg_catalog.to_regclass('{resync}'),
  pg_catalog.to_regclass('{tracked}'),
  pg_catalog.to_regclass('{state}')
)

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
