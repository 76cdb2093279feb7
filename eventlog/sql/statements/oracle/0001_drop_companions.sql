begin
  execute immediate q'[
drop table {notice} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
begin
  execute immediate q'[
drop table {resync} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
begin
  execute immediate q'[
drop table {failed} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
begin
  execute immediate q'[
drop table {waiting} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
begin
  execute immediate q'[
drop table {batch} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
begin
  execute immediate q'[
drop table {lock} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
begin
  execute immediate q'[
drop table {state} purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/
