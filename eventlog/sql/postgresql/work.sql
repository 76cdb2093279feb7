-- work --
-- Begins a transaction that sees what others commit meanwhile.
begin isolation level read committed

-- demand_epoch --
-- Our epoch, kept from changing until our transaction ends. Fails if another leads, or documents leave in a pause.
select cast(case
  when epoch <> :epoch then 'another publisher leads'
  when paused_at is not null and :leaves = 1 then 'the publisher is paused'
  else epoch::text
end as bigint)
from {state}
where one = 1
{share_lock}

-- demand_redrive --
-- The notice of the last redrive. Fails if it is another one.
select cast(case when notice_id = :redriven then notice_id::text else 'rows were redriven' end as bigint)
from (select coalesce(max(notice_id), 0) as notice_id from {notice} where kind = 'redrive') redrive

-- demand_none_due --
-- One. Fails if an event is due by then.
select cast(case
  when exists (select null from {retry} where next_at <= :due) then 'events are due again'
  else '1'
end as bigint)
