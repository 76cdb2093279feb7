select cast(pg_backend_pid() as text)
/
