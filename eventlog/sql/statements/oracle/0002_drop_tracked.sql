begin
  execute immediate q'[
drop table {tracked} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
