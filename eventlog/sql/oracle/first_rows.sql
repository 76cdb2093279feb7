fetch first :rows rows only
/
