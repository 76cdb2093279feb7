select schema_name, table_name, of_schema, of_table, logged_as, table_id, table_owner, choice
from {tracked}
order by tracked_at, schema_name, table_name
/
