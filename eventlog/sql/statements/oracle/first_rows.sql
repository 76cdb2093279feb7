fetch first :most rows only
/
