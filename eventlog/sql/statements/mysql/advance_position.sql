alter table {log} auto_increment = {next}
/
