select coalesce(sum(octets), 0)
from (
  select {size} as octets
  from {log} r {use_index}
  where {conditions}
  order by {order}
  {next_rows}
) first_pending
/
