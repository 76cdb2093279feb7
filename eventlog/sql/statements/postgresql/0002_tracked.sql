create table if not exists {tracked} (
  schema_name text not null,
  table_name text not null,
  of_schema text not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table text not null,
  logged_as text, -- the table_name of its rows, which stays its own for ever, null for a child
  table_id text, -- by which a table that was made anew is told
  table_owner text,
  choice text, -- what of it is logged, null: nothing any more
  tracked_at timestamp(6) not null default (clock_timestamp() at time zone 'UTC'),
  tracked_by text not null default session_user,
  constraint {tracked_key} primary key (schema_name, table_name, of_schema, of_table)
)
/
