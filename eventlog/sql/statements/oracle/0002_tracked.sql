begin
  execute immediate q'[
create table {tracked} (
  schema_name varchar2(128) not null,
  table_name varchar2(128) not null,
  of_schema varchar2(128) not null, -- the table as whose its rows are logged: itself, or a child's parent
  of_table varchar2(128) not null,
  logged_as varchar2(257), -- the table_name of its rows, which stays its own for ever, null for a child
  table_id varchar2(128), -- by which a table that was made anew is told
  table_owner varchar2(128),
  choice clob, -- what of it is logged, null: nothing any more
  tracked_at timestamp(6) default sys_extract_utc(systimestamp) not null,
  tracked_by varchar2(4000) default sys_context('USERENV', 'SESSION_USER') not null,
  constraint {tracked_key} primary key (schema_name, table_name, of_schema, of_table)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/
