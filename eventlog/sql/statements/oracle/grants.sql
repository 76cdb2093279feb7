grant select, update ({status}, {event_type}), delete on {log} to {role}
/
grant select, update on {state} to {role}
/
grant select, update on {lock} to {role}
/
grant select, insert, update, delete on {batch} to {role}
/
grant select, insert, update, delete on {retry} to {role}
/
grant select, insert, update, delete on {held} to {role}
/
grant select, insert, update, delete on {failed} to {role}
/
grant select, insert on {notice} to {role}
/
grant select on {tracked} to {role}
/
grant execute on {leadership} to {role}
/
begin
  execute immediate q'[grant select on {log_sequence} to {role}]';
exception
  when others then
    if sqlcode not in (-942, -2289, -4043) then raise; end if; -- an attached log may have no such sequence
end;
/
