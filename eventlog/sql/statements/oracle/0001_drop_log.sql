begin
  execute immediate q'[
drop table {log} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
begin
  execute immediate q'[
drop sequence {log_sequence}
  ]';
exception
  when others then
    if sqlcode <> -2289 then raise; end if; -- ORA-02289: it is gone already
end;
/
