select fate, count(*), min(due)
from (
  select
    case
      when {loopback} then 'loopback'
      when {future} then 'future'
      when case when {not_held} then 1 else 0 end = 0 then 'held'
      else 'free'
    end as fate,
    {event_time_text} as due
  from {log} r
  where {pending}
) fates
group by fate
/
