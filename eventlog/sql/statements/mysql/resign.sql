do release_all_locks()
/
