-- slot_names --
-- Names for the slot and the publication of a log, of letters that slots take. The name on record is the first. The next one is
-- unique among all databases of the server, unless one of them was renamed.
with base as (
  select pg_catalog.lower(pg_catalog.current_database() || '_' || {schema_text} || '_' || {log_text}) as name
), numbered as (
  select 0 as place, cast(slot_facts as json) ->> 'slot' as name from {state} where one = 1
  union all
  select t.place, pg_catalog.substr(pg_catalog.regexp_replace(base.name, '[^a-z0-9_]', '_', 'g'), 1, 50) || '_'
    || pg_catalog.substr(pg_catalog.md5(base.name || case when t.place > 1 then ' ' || t.place else '' end), 1, 8)
  from base
  cross join pg_catalog.generate_series(1, 99) as t (place)
)
select name from numbered where name is not null order by place

-- slot_now --
-- The server, and what it has of the slot and its publication.
select pg_catalog.current_setting('wal_level') as wal_level,
  pg_catalog.current_setting('max_slot_wal_keep_size') as keeps,
  cast(pg_catalog.current_setting('server_version_num') as integer) / 10000 as version,
  cast((select system_identifier from pg_catalog.pg_control_system()) as text) as system,
  cast(pg_catalog.pg_current_wal_insert_lsn() - '0/0' as bigint) as server_end,
  named.slot_name is not null as is_there,
  case when s.plugin = 'pgoutput' then null
    when s.plugin is not null then 'the plugin ' || s.plugin
    when named.database is not null then 'database ' || named.database
    when named.slot_name is not null then 'physical replication'
  end as owner,
  s.active_pid, s.wal_status,
  cast(s.restart_lsn - '0/0' as bigint) as restart, cast(s.confirmed_flush_lsn - '0/0' as bigint) as confirmed,
  cast(p.oid as bigint) as publication, cast(cast(p.xmin as text) as bigint) as altered_by,
  cast(pg_catalog.array_remove(array[
    case when not p.pubinsert then 'inserts' end,
    case when not p.pubupdate then 'updates' end,
    case when not p.pubdelete then 'deletes' end,
    case when not p.pubtruncate then 'truncates' end,
    case when not p.pubviaroot then 'publish_via_partition_root' end
  ], null) as text[]) as missing_options,
  coalesce(to_jsonb(p) ->> 'pubgencols' = 'n', false) as hides_generated,
  coalesce(p.puballtables, false) as has_all_tables,
  coalesce(to_jsonb(s) ->> 'failover', 'true') = 'true' as fails_over,
  cast(pg_catalog.current_setting('max_replication_slots') as integer)
    - (select count(*) from pg_catalog.pg_replication_slots) as free_slots,
  not exists (
    select from pg_catalog.pg_proc f
    cross join pg_catalog.aclexplode(coalesce(f.proacl, pg_catalog.acldefault('f', f.proowner))) a
    where f.proname = 'pg_logical_emit_message' and a.grantee = 0) as proves_users
from (select 1) always
left join pg_catalog.pg_replication_slots named on named.slot_name = :slot
left join pg_catalog.pg_replication_slots s on s.slot_name = :slot and s.database = pg_catalog.current_database()
left join pg_catalog.pg_publication p on p.pubname = :slot

-- slot_tables --
-- The identity of tables, by which their old rows are named: one row for a table and for each of its partitions. Of generated
-- columns the server sends those that are stored, from PostgreSQL 18 on.
with recursive named as (
  select g.place, c.oid
  from json_to_recordset(cast(:tables as json)) as g (place integer, schema_name text, table_name text)
  join pg_catalog.pg_namespace n on n.nspname = g.schema_name
  join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = g.table_name
), tree (place, root, oid) as (
  select named.place, named.oid, named.oid from named
  union all
  select tree.place, tree.root, i.inhrelid
  from tree
  join pg_catalog.pg_class p on p.oid = tree.oid and p.relkind = 'p'
  join pg_catalog.pg_inherits i on i.inhparent = tree.oid
)
select tree.place, cast(tree.root as bigint), cast(tree.oid as bigint), c.relkind in ('r', 'p'), c.relpersistence = 'p',
  exists (select from pg_catalog.pg_inherits i where c.relkind = 'r' and i.inhparent = c.oid), c.relreplident = 'f',
  cast(array(
    select a.attname
    from pg_catalog.pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and (c.relreplident = 'f' or exists (
      select from pg_catalog.pg_index i
      where i.indrelid = c.oid and a.attnum = any (i.indkey) and i.indisvalid
        and case c.relreplident when 'd' then i.indisprimary when 'i' then i.indisreplident else false end))
  ) as text[]),
  cast(array(
    select a.attname
    from pg_catalog.pg_attribute a
    where a.attrelid = c.oid and not a.attisdropped and (a.attgenerated = 'v'
      or a.attgenerated = 's' and cast(pg_catalog.current_setting('server_version_num') as integer) < 180000)
  ) as text[]),
  c.relreplident = 'f' and exists (
    select from pg_catalog.pg_attribute a where a.attrelid = c.oid and not a.attisdropped and a.attgenerated = 'v')
from tree
join pg_catalog.pg_class c on c.oid = tree.oid
order by tree.place

-- slot_facts --
-- What is on record of the slot that fills the log; null if another filler does.
select slot_facts from {state} where one = 1

-- slot_record --
-- Puts on record that a slot fills the log, or that none does.
update {state} set slot_facts = :facts where one = 1

-- slot_position --
-- Up to where the changes are in the log, and when the last of them was committed and logged.
select lsn, committed_at, noted_at from {slot} order by lsn desc limit 1

-- slot_note --
-- Notes up to where the changes are in the log, in place of the former position. A row is added, because the versions of one
-- that is changed pile up while somebody keeps an old snapshot open.
with former as (delete from {slot} where lsn <> :lsn)
insert into {slot} (lsn, committed_at)
values (:lsn, timestamp '2000-01-01' + cast(:time as bigint) * interval '1 microsecond')
on conflict do nothing

-- slot_visible --
-- How many of these transactions, from the first on, a new snapshot sees, and what is on record of the slot. Their numbers are
-- widened by the epoch of the next number of all.
with seen as materialized (
  select s.snapshot, cast(cast(pg_catalog.pg_snapshot_xmax(s.snapshot) as text) as bigint) as last
  from (select pg_catalog.pg_current_snapshot() as snapshot) s
)
select count(*), (select slot_facts from {state} where one = 1)
from (
  select bool_and(pg_catalog.pg_visible_in_snapshot(
    cast(cast(seen.last + (x.xid - seen.last % 4294967296 + 6442450944) % 4294967296 - 2147483648 as text) as xid8),
    seen.snapshot)) over (order by x.place) as all_visible
  from seen
  cross join (
    select cast(e.xid as bigint) as xid, e.place
    from json_array_elements_text(cast(:xids as json)) with ordinality as e (xid, place)
  ) x
) v
where v.all_visible

-- slot_rows --
-- Logs changes. Each key is written by the expression that triggers and query-backs have for its type.
insert into {log} ({raw_event_type}, {raw_perpetrator}, {raw_table_name}, {raw_table_key})
with g as materialized (
  select * from json_to_recordset(cast(:rows as json)) as g (place bigint, feed integer, kind integer, who text{keys})
)
select u.kind, u.who, u.table_name, u.table_key
from (
{branches}
) u
order by u.place

-- slot_branch --
-- The rows of one table.
  select t.place, t.kind, t.who, {table_name} as table_name, {key} as table_key
  from (select g.place, g.kind, g.who{columns} from g where g.feed = {feed}) t

-- slot_gaps --
-- The tables whose log may lack changes from before a record_id. A gap is closed with the number of its notice.
select distinct on (g.table_name) g.table_name, g.last_id, g.words, g.notice_id
from {notice} g
where g.kind = 'gap' and not exists (
  select from {notice} l
  where l.table_name = g.table_name and l.kind = 'gap closed' and l.last_id >= g.notice_id)
order by g.table_name, g.notice_id desc

-- slot_left --
-- The objects whose last row after a record_id is no delete.
select {table_name}, {table_key}
from {log} r
where {record_id} > :after
group by {table_name}, {table_key}
having max(case when cast({event_type} as text) = '4' then 0 else {record_id} end)
  > max(case when cast({event_type} as text) = '4' then {record_id} else 0 end)

-- slot_end_reader --
-- Ends the session that reads the slot: of a publisher that leads no more.
select pg_catalog.pg_terminate_backend(s.active_pid)
from pg_catalog.pg_replication_slots s
where s.slot_name = :slot and s.database = pg_catalog.current_database() and s.active_pid is not null

-- slot_create --
-- Makes a slot, which standbys keep too from PostgreSQL 17 on.
select lsn from pg_catalog.pg_create_logical_replication_slot({slot_text}, 'pgoutput'{failover}) as made (name, lsn)

-- slot_drop --
-- Drops a slot of this database.
select pg_catalog.pg_drop_replication_slot(s.slot_name)
from pg_catalog.pg_replication_slots s
where s.slot_name = :slot and s.database = pg_catalog.current_database()

-- drop_recorded_slot --
-- Drops the slot that fills the log, if one does, and its publication.
declare
  slot text := (select cast(slot_facts as json) ->> 'slot' from {state} where one = 1);
begin
  if slot is not null then
    perform pg_catalog.pg_drop_replication_slot(s.slot_name)
    from pg_catalog.pg_replication_slots s
    where s.slot_name = slot and s.database = pg_catalog.current_database();
    execute pg_catalog.format('drop publication if exists %I', slot);
  end if;
end

-- publication_create --
-- Makes a publication without tables.
create publication {publication} with ({options})

-- publication_options --
-- Gives a publication its options.
alter publication {publication} set ({options})

-- publication_drop --
-- Drops a publication.
drop publication if exists {publication}

-- publication_tables --
-- Gives a publication its tables.
alter publication {publication} set table {members}

-- publication_members --
-- The tables that a publication has by their own names, each with its number, with the columns where it lists some, and whether
-- it has only some rows. The number is null if the publication has the table by its schema, or has all tables. Before PostgreSQL 15
-- none of it is so. A partition is missing if its changes are published as those of a table above it.
select cast(c.oid as bigint), n.nspname || '.' || c.relname, cast(m.oid as bigint),
  case when pg_catalog.jsonb_typeof(m.entry -> 'prattrs') = 'array' then cast(array(
    select a.attname
    from pg_catalog.pg_attribute a
    where a.attrelid = c.oid and m.entry -> 'prattrs' @> to_jsonb(a.attnum)
    order by a.attname
  ) as text[]) end,
  coalesce(pg_catalog.jsonb_typeof(m.entry -> 'prqual') <> 'null', false)
from pg_catalog.pg_publication p
join pg_catalog.pg_publication_tables t on t.pubname = p.pubname
join pg_catalog.pg_namespace n on n.nspname = t.schemaname
join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = t.tablename
left join (
  select r.oid, r.prpubid, r.prrelid, to_jsonb(r) as entry from pg_catalog.pg_publication_rel r
) m on m.prpubid = p.oid and m.prrelid = c.oid
where p.pubname = :slot

-- lock_users_out --
-- Locks tables until the transaction ends. Gives up before a writer that waits for one of them looks for a deadlock, because the
-- server ends the session that finds one.
declare
  former text := pg_catalog.current_setting('lock_timeout');
  ends timestamptz := pg_catalog.clock_timestamp() + (
    select cast(setting as integer) / 2 * interval '1 ms' from pg_catalog.pg_settings where name = 'deadlock_timeout');
  name text;
begin
  foreach name in array array[{tables}] loop
    perform pg_catalog.set_config('lock_timeout', cast(greatest(1, pg_catalog.floor(
      extract(epoch from ends - pg_catalog.clock_timestamp()) * 1000)) as text), true);
    execute 'lock table ' || name || ' in {mode} mode';
  end loop;
  perform pg_catalog.set_config('lock_timeout', former, true);
end
