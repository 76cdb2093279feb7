select event_id, table_name, table_key, record_ids, tries, next_at, reason
from {waiting}
where next_at <= :until
order by next_at
{first_rows}
/
