begin
  execute immediate q'[
create index {place}{log_future} on {log} (
  decode({status}, 'N', {event_time}),
  decode({status}, 'N', {indexed_record_id})
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/
