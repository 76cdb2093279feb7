select /*+ leading(k) use_nl(t) */ {columns}
from json_table(:wanted, '$[*]' columns (n number path '$.n'{typed_paths})) k
join {source} t on {matches}
group by {columns}
having {every}
{first_rows}
/
