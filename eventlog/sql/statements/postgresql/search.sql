select {columns}
from json_to_recordset(cast(:wanted as json)) as k(n integer{typed_keys})
join {source} as t on {matches}
group by {columns}
having {every}
{first_rows}
/
