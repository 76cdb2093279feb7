begin
  execute immediate q'[
alter table {state} add (leader_session varchar2(64))
  ]';
exception
  when others then
    if sqlcode <> -1430 then raise; end if; -- ORA-01430: it is there already
end;
/
begin
  execute immediate q'[
alter table {state} add (highest_id number(19))
  ]';
exception
  when others then
    if sqlcode <> -1430 then raise; end if; -- ORA-01430: it is there already
end;
/
