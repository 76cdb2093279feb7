insert into {tracked} (schema_name, table_name, of_schema, of_table, logged_as, table_id, table_owner, choice)
select n.nspname, c.relname, {of_schema}, {of_table}, {logged_as}, c.oid, r.rolname, {choice}
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_roles r on r.oid = c.relowner
where n.nspname = {schema_name} and c.relname = {own_name}
on conflict on constraint {tracked_key} do update
set logged_as = excluded.logged_as, table_id = excluded.table_id, table_owner = excluded.table_owner,
  choice = excluded.choice, tracked_at = excluded.tracked_at, tracked_by = excluded.tracked_by
/
