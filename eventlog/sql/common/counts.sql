select {status}, {table_name}, count(*)
from {log}
group by {status}, {table_name}
order by {status}, {table_name}
/
