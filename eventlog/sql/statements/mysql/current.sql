select k.n{columns}
from json_table(:keys, '$[*]' columns (n integer path '$.n'{typed_paths})) as k
straight_join {source} as t on {matches}
order by k.n
/
