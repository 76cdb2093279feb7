set session information_schema_stats_expiry = 0
/
select auto_increment - 1 from information_schema.tables where table_schema = {schema_text} and table_name = {log_text}
/
