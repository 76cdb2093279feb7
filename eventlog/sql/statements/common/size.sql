octet_length({table_key}) + coalesce(octet_length({old_value}), 0) + coalesce(octet_length({new_value}), 0)
/
