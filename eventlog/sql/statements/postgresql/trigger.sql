drop trigger if exists {trigger} on {table}
/
create trigger {trigger}
  {event} on {table}
  {referencing}for each {granularity} execute function {function}()
/
