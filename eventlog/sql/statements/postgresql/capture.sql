create or replace function {function}() returns trigger
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
set row_security to off
{settings}
as {text}
/
revoke all on function {function}() from public
/
