create or replace trigger {schema}.{trigger} after {event} on {table} for each row
{body}
/
