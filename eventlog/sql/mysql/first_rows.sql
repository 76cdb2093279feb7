limit :most
/
