insert into {notice} (kind, table_name, words) values (:kind, :table_name, :words)
/
