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
