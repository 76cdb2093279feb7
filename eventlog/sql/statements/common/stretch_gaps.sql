select before_it + 1, found - 1
from (
  select {id} as found, lag({id}) over (order by {record_id}) as before_it
  from {log} r
  where {record_id} > :after and {record_id} <= :upto and {usable}
) neighbours
where found > before_it + 1
order by found
{first_rows}
/
