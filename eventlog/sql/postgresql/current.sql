select k.n{columns}
from json_to_recordset(cast(:keys as json)) as k(n integer{typed_keys})
join {source} as t on {matches}
order by k.n
/
