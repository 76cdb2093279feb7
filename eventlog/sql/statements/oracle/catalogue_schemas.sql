select username as schema_name from all_users
/
