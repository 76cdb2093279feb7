drop table if exists {notice}
/
drop table if exists {resync}
/
drop table if exists {failed}
/
drop table if exists {waiting}
/
drop table if exists {batch}
/
drop table if exists {state}
/
