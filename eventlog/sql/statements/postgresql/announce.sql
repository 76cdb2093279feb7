select pg_advisory_lock({wake_class}, {wake_key})
/
