begin
  execute immediate q'[
create index {log_pending} on {log} (case {status} when 'N' then {record_id} end)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/
