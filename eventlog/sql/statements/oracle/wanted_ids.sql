json_table(:ids, '$[*]' columns (id number path '$')) wanted
/
