create sequence {log_sequence} nocache order
/
alter table {log} modify ({record_id} default {log_sequence}.nextval)
/
