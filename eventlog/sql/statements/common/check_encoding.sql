select null as encoding
from {log}
where 1 = 0
/
