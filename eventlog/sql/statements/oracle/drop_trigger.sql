drop trigger {schema}.{trigger}
/
begin
  execute immediate {drop_package};
exception
  when others then
    if sqlcode <> -4043 then raise; end if; -- ORA-04043: it is not there, nor was it of older triggers
end;
/
