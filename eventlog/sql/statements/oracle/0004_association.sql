begin
  execute immediate q'[
alter table {state} add association varchar2(9)
  ]';
exception
  when others then
    if sqlcode <> -1430 then raise; end if; -- ORA-01430: it is there already
end;
/
update {state} set association = '{association}' where association is null
/
