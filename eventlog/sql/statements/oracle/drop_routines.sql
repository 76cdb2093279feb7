drop procedure {event}
/
drop function {key_value}
/
drop package {capture}
/
drop package {leadership}
/
drop package {switch}
/
