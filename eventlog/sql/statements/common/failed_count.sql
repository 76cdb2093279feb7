select count(*) from {failed}
/
