select distinct object_hash from {retry}
/
