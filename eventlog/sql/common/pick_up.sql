with pending as (
  select
{row},
    row_number() over (order by {order}) as place
  from {log}
  where {conditions}
  order by {order}
  {first_rows}
), taken as (
  select table_name, table_key from pending where place <= :row_limit
)
select record_id, status, event_type, event_time, perpetrator, table_name, table_key, column_name, old_value, new_value
from pending
where place <= :row_limit or (table_name, table_key) in (select table_name, table_key from taken)
order by place
/
