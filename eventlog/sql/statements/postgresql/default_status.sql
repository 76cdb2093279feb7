alter table {log} alter column {status} set default 'N'
/
