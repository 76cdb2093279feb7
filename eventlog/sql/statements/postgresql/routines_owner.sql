alter function {event}(integer, text, text, text, text, text) owner to {owner}
/
alter function {key_value}(text) owner to {owner}
/
alter function {capture_off}(text) owner to {owner}
/
alter function {capture_on}() owner to {owner}
/
alter function {off}() owner to {owner}
/
