select pg_export_snapshot()
/
