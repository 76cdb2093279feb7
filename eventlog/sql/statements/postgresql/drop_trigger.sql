drop trigger if exists {trigger} on {table}
/
