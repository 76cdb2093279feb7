delete from {resync} where table_name = :table_name
/
