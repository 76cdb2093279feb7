compound trigger
  -- {mark}
  -- of {log}, through {package} {digest}
  arrived {package}.entries; -- rows of new keys, which come after all deletes of the statement
  capturing boolean := {package}.capturing;
  old_key varchar2(32767); -- null of an inserted row
  new_key varchar2(32767); -- null of a deleted row
  moved boolean;
  said pls_integer;

after each row is
begin
  if not capturing then
    return;
  end if;
  old_key := null;
  new_key := null;
  moved := false;
  said := 0;
  if not inserting then
    old_key := {package}.keyed({old_key});
  end if;
  if not deleting then
    new_key := {package}.keyed({new_key});
  end if;
  if updating then
    moved := {package}.unlike(old_key, new_key);
  end if;
{rows}
end after each row;

after statement is
begin
  {package}.flush(arrived);
end after statement;

end;
/
