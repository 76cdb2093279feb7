lengthb({table_key}) + coalesce(dbms_lob.getlength({old_value}), 0) + coalesce(dbms_lob.getlength({new_value}), 0)
/
