insert into {log} ({event_type}, {perpetrator}, {table_name}, {table_key})
select :event_type, null, :table_name, {key_text}
from {source} t
where {within}
order by {keys}
/
