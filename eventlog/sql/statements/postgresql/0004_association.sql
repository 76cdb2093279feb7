alter table {state} add column if not exists association text
/
update {state} set association = '{association}' where association is null
/
