select count(case when {usable} then 1 end), {oldest}, count(case when {usable} then null else 1 end)
from {log} r
where {is_new}
/
