select before_it + 1, found - 1
from (
  select {record_id} as found, lag({record_id}) over (order by {record_id}) as before_it
  from {log}
  where {record_id} > :after and {record_id} <= :upto
) neighbours
where found > before_it + 1
order by found
{first_rows}
/
