drop trigger {schema}.{trigger}
/
