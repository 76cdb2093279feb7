create or replace trigger {trigger}
for {events} on {table}
{aliases}{body}
/
