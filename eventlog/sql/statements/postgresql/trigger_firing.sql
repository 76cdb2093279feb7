alter table {table} enable {firing} trigger {trigger}
/
