-- work --
-- Begins a transaction that sees what others commit meanwhile.
begin isolation level read committed

-- demand_epoch --
-- The epoch of the leader, kept from changing until our transaction ends. Fails unless it is ours.
select cast(case when epoch = :epoch then epoch::text else 'another publisher leads' end as bigint)
from {state}
where one = 1
{share_lock}

-- demand_redrive --
-- The notice of the last redrive. Fails if it is another one.
select cast(case when notice_id = :redriven then notice_id::text else 'rows were redriven' end as bigint)
from (select coalesce(max(notice_id), 0) as notice_id from {notice} where kind = 'redrive') redrive
