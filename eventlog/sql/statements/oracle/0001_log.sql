begin
  execute immediate q'[
create sequence {log_sequence} nocache order
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/
begin
  execute immediate q'[
create table {log} (
  {record_id} number(19) default {log_sequence}.nextval not null,
  {status} char(1) default 'N' not null,
  {event_type} number(10) not null,
  {event_time} timestamp(6) default sys_extract_utc(systimestamp) not null,
  {perpetrator} varchar2(4000) default sys_context('USERENV', 'SESSION_USER'),
  {table_name} varchar2(4000) not null,
  {table_key} varchar2(4000) not null,
  {column_name} varchar2(4000),
  {old_value} clob,
  {new_value} clob,
  constraint {log_key} primary key ({record_id})
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/
