drop function if exists {event}(integer, text, text, text, text, text)
/
drop function if exists {key_value}(text)
/
drop function if exists {capture_off}(text)
/
drop function if exists {capture_on}()
/
drop function if exists {off}()
/
