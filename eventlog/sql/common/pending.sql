{status} = 'N'
/
