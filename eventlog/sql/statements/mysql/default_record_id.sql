alter table {log} modify column {record_id} bigint not null auto_increment
/
