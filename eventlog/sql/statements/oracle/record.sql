merge into {tracked} t
using (
  select o.owner as schema_name, o.object_name as table_name, {of_schema} as of_schema, {of_table} as of_table,
    {logged_as} as logged_as, to_char(o.object_id) as table_id, {choice} as choice
  from all_objects o
  where o.owner = {schema_name} and o.object_name = {own_name} and o.object_type = 'TABLE'
) s
on (
  t.schema_name = s.schema_name and t.table_name = s.table_name and t.of_schema = s.of_schema
  and t.of_table = s.of_table
)
when matched then update set t.logged_as = s.logged_as, t.table_id = s.table_id, t.table_owner = s.schema_name,
  t.choice = s.choice
when not matched then insert (schema_name, table_name, of_schema, of_table, logged_as, table_id, table_owner, choice)
values (s.schema_name, s.table_name, s.of_schema, s.of_table, s.logged_as, s.table_id, s.schema_name, s.choice)
/
