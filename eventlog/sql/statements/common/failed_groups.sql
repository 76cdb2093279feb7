select substr(f.reason, 1, 200) as reason_begins, count(*)
from {log} r left join {failed} f on f.record_id = {record_id}
where {conditions}
group by substr(f.reason, 1, 200)
order by count(*) desc, reason_begins
{first_rows}
/
