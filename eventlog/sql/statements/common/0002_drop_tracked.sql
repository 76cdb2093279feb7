drop table if exists {tracked}
/
