case {status} when 'N' then {record_id} end is not null
/
