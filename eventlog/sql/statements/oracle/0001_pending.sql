begin
  execute immediate q'[
create index {place}{log_pending} on {log} (decode({status}, 'N', {indexed_record_id}))
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/
