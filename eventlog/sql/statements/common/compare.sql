-- compare_rows --
-- The key and the texts of every row of a table.
{functions}select
  {columns}
from {source} t
where {within}
