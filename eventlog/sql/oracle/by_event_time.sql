case {log}.{status} when 'N' then {log}.{event_time} end, case {log}.{status} when 'N' then {log}.{record_id} end
/
