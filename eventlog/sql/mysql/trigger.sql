lock tables {table} write
/
drop trigger if exists {schema}.{trigger}
/
create trigger {schema}.{trigger} after {event} on {table} for each row
{body}
/
unlock tables
/
