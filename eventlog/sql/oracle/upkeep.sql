-- failed_groups --
-- The beginnings of reasons, with how many rows have each.
select reason_begins, count(*)
from (
  select dbms_lob.substr(f.reason, 200, 1) as reason_begins
  from {log} r left join {failed} f on f.record_id = {record_id}
  where {conditions}
)
group by reason_begins
order by count(*) desc, reason_begins
{first_rows}
