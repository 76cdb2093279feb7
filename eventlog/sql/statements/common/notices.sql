select noticed_at, username, kind, table_name, words
from {notice}
order by notice_id desc
{first_rows}
/
