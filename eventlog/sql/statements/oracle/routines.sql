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
  values (
    {event_label}.an_event_type, sys_context('USERENV', 'SESSION_USER'), {event_label}.a_table_name,
    {event_label}.a_table_key, {event_label}.a_column_name, {event_label}.an_old_value, {event_label}.a_new_value);
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
create or replace package {leadership} authid definer is
  procedure hold;
  function held return number;
end;
/
create or replace package body {leadership} is
  answer number; -- of the request, in this session

  procedure hold is
  begin
    -- a name of its own, not one of dbms_lock: what the owner was not granted must not break the others
    execute immediate 'begin :answer := sys.dbms_lock.request(:id, 6, 0, false); end;'
    using out answer, in {lock_number};
  exception
    when others then
      if sqlcode <> -6550 then raise; end if; -- ORA-06550: the owner may not execute dbms_lock
      answer := null;
  end;

  function held return number is
  begin
    return case when answer in (0, 4) then 1 when answer is not null then 0 end; -- 4: this session has it
  end;
end;
/
declare
  told varchar2(4000);
begin
  select max(e.type || ' ' || e.name || ', line ' || e.line || ': ' || substr(e.text, 1, 1000))
    keep (dense_rank first order by e.type, e.name, e.sequence)
  into told
  from sys.all_errors e
  where e.attribute = 'ERROR' and e.owner = {schema_text} and e.name in ({routine_texts});
  if told is not null then
    raise_application_error(-20000, 'a routine of the log does not compile: ' || told);
  end if;
end;
/
