select mine.{record_id}
from {log} mine
where mine.{record_id} {among_ids} and mine.{event_type} in (1, 2, 3, 7, 8) and exists (
  select 1 from {log} later
  where later.{record_id} > mine.{record_id} and later.{status} in ('S', 'W')
    and later.{table_name} = mine.{table_name} and later.{table_key} = mine.{table_key}
    and (later.{column_name} = mine.{column_name} or later.{event_type} in (4, 5, 6)))
order by mine.{record_id}
/
