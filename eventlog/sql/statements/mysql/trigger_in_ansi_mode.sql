set @eventlog_sql_mode = @@sql_mode
/
set sql_mode = concat(@@sql_mode, ',ANSI_QUOTES')
/
lock tables {table} write
/
drop trigger if exists {schema}.{trial}
/
create trigger {schema}.{trial} after {event} on {table} for each row
if false then
{body};
end if
/
drop trigger {schema}.{trial}
/
drop trigger if exists {schema}.{trigger}
/
create trigger {schema}.{trigger} after {event} on {table} for each row
{body}
/
unlock tables
/
set sql_mode = @eventlog_sql_mode
/
