select {keys}
from {source} t
where {within}
order by {keys}
{next_rows}
/
