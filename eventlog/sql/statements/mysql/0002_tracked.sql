create table if not exists {tracked} (
  schema_name varchar(64) not null,
  table_name varchar(64) not null,
  of_schema varchar(64) not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table varchar(64) not null,
  logged_as varchar(129), -- the table_name of its rows, which stays its own for ever, null for a child
  table_id varchar(64), -- by which a table that was made anew is told: none here
  table_owner varchar(255),
  choice longtext, -- what of it is logged, null: nothing any more
  tracked_at datetime(6) not null default (utc_timestamp(6)),
  tracked_by text not null default (left(user(), char_length(user()) - locate('@', reverse(user())))),
  constraint {tracked_key} primary key (schema_name, table_name, of_schema, of_table)
) engine = InnoDB character set utf8mb4 collate {collation}
/
