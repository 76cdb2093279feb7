limit :rows
/
