select count(*) from {log} where {status} in ('N', 'E', 'F')
/
