drop table if exists {held}
/
drop table if exists {retry}
/
