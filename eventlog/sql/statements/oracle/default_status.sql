alter table {log} modify ({status} default 'N')
/
