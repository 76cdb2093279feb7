create or replace trigger {schema}.{trigger}
for {events} on {table}
{body}
/
