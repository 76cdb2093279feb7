alter session set
  time_zone = '+00:00'
  nls_date_format = 'YYYY-MM-DD HH24:MI:SS'
  nls_timestamp_format = 'YYYY-MM-DD HH24:MI:SS.FF9'
  nls_timestamp_tz_format = 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'
  nls_numeric_characters = '. '
  nls_comp = 'BINARY'
  nls_sort = 'BINARY'
/
