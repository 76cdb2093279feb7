set transaction read only
/
