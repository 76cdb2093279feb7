select pg_advisory_unlock_all()
/
