begin
  execute immediate q'[
drop table {held} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
begin
  execute immediate q'[
drop table {retry} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
