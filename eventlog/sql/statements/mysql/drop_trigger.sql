drop trigger if exists {schema}.{trigger}
/
