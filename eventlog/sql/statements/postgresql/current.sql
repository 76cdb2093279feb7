select k.n{columns}
from pg_catalog.json_to_recordset(cast(:keys as pg_catalog.json)) as k(n integer{typed_keys})
join {source} as t on {matches}
order by k.n
/
