-- now --
-- The database's clock, in UTC.
select {utc_now}{dual}

-- moment --
-- Whether the session still has its settings, the database's clock in UTC, the notices of the last redrive
-- and of anyone, the first and the last time at which events are sent again, and the oldest transaction that may write.
select
  {keeps_settings},
  {utc_now},
  (select coalesce(max(n.notice_id), 0) from {notice} n where n.kind = 'redrive'),
  (select max(n.notice_id) from {notice} n),
  (select min(w.next_at) from {retry} w),
  (select max(w.next_at) from {retry} w),
  {oldest_writer}
from {state} s
where s.one = 1

-- savepoint --
-- Marks where a transaction goes on after a statement that fails.
savepoint attempt

-- back_to_savepoint --
-- Undoes what followed the mark.
rollback to savepoint attempt

-- expect_kind --
-- Nothing: a table that became a view is found by its number here.

-- table_forms --
-- Nothing: a reading of a table that DDL changed is refused by the database.

-- lock_tables --
-- Nothing: likewise.

-- pick_up --
-- The rows that may go.
select
{row}
from {rows}
where {conditions}
order by {order}
{next_rows}

-- pick_few --
-- The rows that may go, if they are fewer than some and not too large together; else none.
select
{row}
from {rows}
where {conditions}
  and (
    select case when count(*) < :few and coalesce(sum(octets), 0) <= :most_bytes then 1 else 0 end
    from (
      select {size} as octets
      from {rows}
      where {conditions}
      order by {order}
      {next_rows}
    ) few
  ) = 1
order by {order}
{next_rows}

-- pending_sizes --
-- The record_ids and sizes of rows that may go.
select {id}, {size}
from {rows}
where {conditions}
order by {order}
{next_rows}

-- pending_bytes --
-- How many bytes the first rows that may go have, and how many rows they are.
select coalesce(sum(octets), 0), count(*)
from (
  select {size} as octets
  from {rows}
  where {conditions}
  order by {order}
  {next_rows}
) first_pending

-- pending_fates --
-- Why new rows may not go: how many for each reason, and the earliest of their times.
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
  from {rows}
  where {conditions}
) fates
group by fate

-- columns_picked --
-- The rows that may go, as they are read by column.
select
{row_by_column}
from {rows}
where {conditions}
order by {order}
{next_rows}

-- columns_by_id --
-- Rows by their record_ids, whatever their status, as they are read by column.
select
{row_by_column}
from {log} r
where {record_id} {among_ids}
order by {record_id}

-- further --
-- What names the events of rows behind a pick-up.
select {id}, {event_type}, {table_name}, {table_key}
from {rows}
where {conditions}
order by {order}
{next_rows}

-- ids --
-- The record_ids of rows under some condition.
select {id}
from {rows}
where {conditions}
order by {order}
{first_rows}

-- rows_by_id --
-- Rows by their record_ids, whatever their status.
select
{row}
from {log} r
where {record_id} {among_ids}
order by {record_id}

-- rows_about --
-- Rows whose key holds some words, whatever their status.
select
{row}
from {log} r
where {table_key} like :words escape '!' and {usable}
order by {record_id}

-- sizes_by_id --
-- The sizes of rows by their record_ids.
select {id}, {size}
from {log} r
where {record_id} {among_ids}
order by {record_id}

-- held --
-- The objects of which events wait.
select distinct object_hash from {retry}

-- remembered --
-- What was about to go out when a leader stopped, oldest first.
select batch, epoch, settled_at, content from {batch} where settled_at is null order by batch

-- latest_batch --
-- The number of the latest batch, which may be on record by answers alone.
select max(batch)
from (select max(batch) as batch from {batch} union all select max(batch) as batch from {answer}) latest

-- retries --
-- The events whose time to be sent again has come, or is further off than any wait, since the clock was set
-- back; the oldest of each object.
select w.event_id, w.object_table, w.object_key, w.record_ids, w.max_changes, w.tries, w.next_at, w.reason
from {retry} w
where (w.next_at <= :until or w.next_at > :beyond)
  and not exists (
    select null from {retry} older
    where older.object_hash = w.object_hash and older.first_id < w.first_id)
order by w.next_at
{first_rows}

-- association --
-- How this log writes associations.
select association from {state} where one = 1

-- attached --
-- Whether the log is one that we did not create.
select attached from {state}

-- highest --
-- The highest record_id that ever went out.
select max(record_id) from {sent}

-- latest_redrive --
-- The notice of the last redrive.
select coalesce(max(notice_id), 0) from {notice} where kind = 'redrive'

-- newest_row --
-- The highest record_id in the log.
select max({record_id}) from {log}

-- number_transaction --
-- The number of our transaction; there is none here.
select null{dual}

-- ids_ascend --
-- Whether no row can get a lower record_id than one that was drawn before: that is not known here.
select 0{dual}

-- tracked_names --
-- The tables whose rows our triggers write.
select schema_name, table_name from {tracked} where choice is not null and logged_as is not null
