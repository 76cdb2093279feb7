select k.n{columns}
from jsonb_to_recordset(cast(:keys as jsonb)) as k(n integer{typed_keys})
join {source} as t on {matches}
order by k.n
/
