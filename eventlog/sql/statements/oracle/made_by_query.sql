  made clob;
begin
  select {text} into made from sys.dual;
  return made;
/
