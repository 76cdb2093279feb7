create or replace procedure {event}(
  an_event_type in number,
  a_table_name in varchar2,
  a_table_key in varchar2,
  a_column_name in varchar2 default null,
  an_old_value in clob default null,
  a_new_value in clob default null
) authid definer is
begin
  insert into {log} ({event_type}, {perpetrator}, {table_name}, {table_key}, {column_name}, {old_value}, {new_value})
  values (an_event_type, sys_context('USERENV', 'SESSION_USER'), a_table_name, a_table_key, a_column_name, an_old_value, a_new_value);
end;
/
create or replace function {key_value}(value in varchar2) return varchar2 deterministic is
begin
  return {quoted};
end;
/
-- made once, and never again: to replace a package with a variable breaks every session that uses it
begin
  execute immediate q'[
create package {switch} authid definer is
  is_off boolean := false;
end;
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/
create or replace package {capture} authid definer is
  procedure off(reason in varchar2);
  procedure resume;
  function is_off return boolean;
end;
/
create or replace package body {capture} is
  procedure off(reason in varchar2) is
    pragma autonomous_transaction; -- the line stays, whatever becomes of the load
  begin
    insert into {notice} (username, kind, words)
    values (
      sys_context('USERENV', 'SESSION_USER'), 'capture off', sys_context('USERENV', 'SID') || ': ' || off.reason);
    commit;
    {switch}.is_off := true;
  end;

  procedure resume is
  begin
    {switch}.is_off := false;
  end;

  function is_off return boolean is
  begin
    return {switch}.is_off;
  end;
end;
/
