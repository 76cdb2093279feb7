alter table {state} add column if not exists association varchar(9)
/
update {state} set association = '{association}' where association is null
/
