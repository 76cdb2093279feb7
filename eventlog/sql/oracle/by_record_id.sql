case {log}.{status} when 'N' then {log}.{record_id} end
/
