insert into {log} ({raw_event_type}, {raw_perpetrator}, {raw_table_name}, {raw_table_key})
select :event_type, null, :table_name, {key_text}
from {source} t
where {within}
order by {keys}
/
