json_table(:ids, '$[*]' columns (id bigint path '$')) as wanted
/
