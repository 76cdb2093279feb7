select count(*)
from (
  select {record_id} as found
  from {log} r {use_index}
  where {pending} and {record_id} > :after and {record_id} <= :upto
  {first_rows}
) some_pending
/
