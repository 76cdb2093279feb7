case {status} when 'N' then {event_time} end, case {status} when 'N' then {record_id} end
/
