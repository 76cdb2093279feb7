{status} in ('E', 'F')
/
