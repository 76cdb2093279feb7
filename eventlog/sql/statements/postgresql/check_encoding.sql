select current_setting('server_encoding') as encoding
where current_setting('server_encoding') = 'SQL_ASCII'
/
