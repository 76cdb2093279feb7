select cast(connection_id() as char)
/
