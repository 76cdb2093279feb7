select record_id, status, event_type, event_time, perpetrator, table_name, table_key, column_name, old_value, new_value
from (
  select pending.*, min(place) over (partition by table_name, table_key) as first_place
  from (
    select
{row},
      row_number() over (order by {order}) as place
    from {log}
    where {conditions}
    order by {order}
    {first_rows}
  ) as pending
) as picked
where first_place <= :row_limit
order by place
/
