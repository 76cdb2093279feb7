select {columns}
from json_table(:wanted, '$[*]' columns (n integer path '$.n'{typed_paths})) as k
straight_join {source} as t on {matches}
group by {columns}
having {every}
{first_rows}
/
