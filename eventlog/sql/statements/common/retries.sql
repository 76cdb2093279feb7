select w.event_id, w.object_table, w.object_key, w.record_ids, w.tries, w.next_at, w.reason
from {retry} w
where w.next_at <= :until
  and not exists (
    select null from {retry} older
    where older.object_hash = w.object_hash and older.first_id < w.first_id)
order by w.next_at
{first_rows}
/
