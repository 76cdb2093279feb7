rollback
/
