grant select, update ({status}, {event_type}), delete on {log} to {role}
/
grant select, update on {state} to {role}
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
