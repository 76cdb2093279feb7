{functions}select /*+ leading(k) use_nl(t) */ k.n{columns}
from json_table(:keys, '$[*]' columns (n number path '$.n'{typed_paths})) k
join {source} t on {matches}
order by k.n
/
