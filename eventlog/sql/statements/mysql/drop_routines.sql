drop procedure if exists {event}
/
drop function if exists {key_value}
/
drop procedure if exists {capture_off}
/
drop procedure if exists {capture_on}
/
