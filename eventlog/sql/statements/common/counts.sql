select {letter}, {table_name}, count(*)
from {log} r
group by {letter}, {table_name}
order by {letter}, {table_name}
/
