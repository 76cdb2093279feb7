drop table if exists {log}
/
