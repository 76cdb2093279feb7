select pg_advisory_unlock({wake_class}, {wake_key})
/
