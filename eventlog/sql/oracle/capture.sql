-- routines --
-- Makes the routines by which users log events, write keys and switch capture off.
create or replace procedure {event}(
  an_event_type in number,
  a_table_name in varchar2,
  a_table_key in varchar2,
  a_column_name in varchar2 default null,
  an_old_value in clob default null,
  a_new_value in clob default null
) authid definer is
begin
  insert into {bare_log} ({event_type}, {perpetrator}, {table_name}, {table_key}, {column_name}, {old_value}, {new_value})
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
    insert into {bare_notice} (username, kind, session_id, words)
    values (
      sys_context('USERENV', 'SESSION_USER'), 'capture off', sys_context('USERENV', 'SID'), off.reason);
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

-- drop_routines --
-- Drops the log's routines.
drop procedure if exists {event}
/
drop function if exists {key_value}
/
drop package if exists {capture}
/
drop package if exists {leadership}
/
drop package if exists {switch}
/

-- capture_body --
-- What a trigger does.
compound trigger
  -- {mark}
  -- of {log}, through {package} {digest}
  arrived {package}.entries; -- rows of new keys, which come after all deletes of the statement
  capturing boolean := {package}.capturing;
  old_key varchar2(32767); -- null of an inserted row
  new_key varchar2(32767); -- null of a deleted row
  moved boolean;
  said pls_integer;

after each row is
begin
  if not capturing then
    return;
  end if;
  old_key := null;
  new_key := null;
  moved := false;
  said := 0;
  if not inserting then
    old_key := {package}.keyed({old_key});
  end if;
  if not deleting then
    new_key := {package}.keyed({new_key});
  end if;
  if updating then
    moved := {package}.unlike(old_key, new_key);
  end if;
{rows}
end after each row;

after statement is
begin
  {package}.flush(arrived);
end after statement;

end;

-- trial --
-- Nothing: some expressions call functions that only triggers have.

-- trigger --
-- Makes a trigger.
create or replace trigger {trigger}
for {events} on {table}
{aliases}{body}

-- package --
-- Makes the package that the triggers of a table call.
create or replace package {package} authid definer is
  type entry is record (
    event_type number(10),
    table_key varchar2(32767),
    column_name varchar2(4000),
    old_value clob,
    new_value clob
  );
  type entries is table of entry index by pls_integer;
  function capturing return boolean;
  function keyed({key_parameters}) return varchar2;
  function unlike(old_key varchar2, new_key varchar2) return boolean;
  procedure note(
    arrived in out nocopy entries, moved boolean, event_type number, table_key varchar2, column_name varchar2,
    old_value clob, new_value clob
  );
  procedure flush(arrived in out nocopy entries);
{declared}
end;
/
create or replace package body {package} is
  -- no variable stands here: a package without any is replaced without harm to sessions that use it
  function capturing return boolean is
  begin
    return not {switch}.is_off;
  end;

  function keyed({key_parameters}) return varchar2 is
  begin
    return {key};
  end;

  function unlike(old_key varchar2, new_key varchar2) return boolean is
  begin
    return sys.utl_raw.cast_to_raw(old_key) <> sys.utl_raw.cast_to_raw(new_key);
  end;

  procedure put(
    event_type number, table_key varchar2, column_name varchar2, old_value clob, new_value clob
  ) is
  begin
    insert into {log} (
      {event_type}, {perpetrator}, {table_name}, {table_key}, {column_name}, {old_value}, {new_value})
    values (
      put.event_type, sys_context('USERENV', 'SESSION_USER'), {table_text}, put.table_key, put.column_name,
      put.old_value, put.new_value);
  end;

  function copy_of(value clob) return clob is
    made clob;
  begin
    if value is not null then
      sys.dbms_lob.createtemporary(made, true, sys.dbms_lob.session);
      if sys.dbms_lob.getlength(value) > 0 then
        sys.dbms_lob.append(made, value);
      end if;
    end if;
    return made;
  end;

  procedure free(value in out nocopy clob) is
  begin
    if value is not null then
      sys.dbms_lob.freetemporary(value);
    end if;
  end;

  procedure note(
    arrived in out nocopy entries, moved boolean, event_type number, table_key varchar2, column_name varchar2,
    old_value clob, new_value clob
  ) is
    this entry;
  begin
    if not moved then
      put(event_type, table_key, column_name, old_value, new_value);
      return;
    end if;
    this.event_type := event_type;
    this.table_key := table_key;
    this.column_name := column_name;
    this.old_value := copy_of(old_value); -- the row's own LOBs are gone when it is
    this.new_value := copy_of(new_value);
    arrived(arrived.count + 1) := this;
  end;

  procedure flush(arrived in out nocopy entries) is
    this entry;
  begin
    for place in 1..arrived.count loop
      this := arrived(place);
      put(this.event_type, this.table_key, this.column_name, this.old_value, this.new_value);
      free(this.old_value);
      free(this.new_value);
    end loop;
    arrived.delete();
  end;
{defined}
end;
/

-- package_type --
-- What a package declares, and defines, for columns of one type.
  function differ{number}(old_value {type}, new_value {type}) return boolean;
  procedure change{number}(
    arrived in out nocopy entries, moved boolean, said in out pls_integer, event_type number,
    table_key varchar2, column_name varchar2, old_value {type}, new_value {type}
  );
/
  function text{number}(value {type}) return clob is
{made}
  end;

  function differ{number}(old_value {type}, new_value {type}) return boolean is
  begin
    return {differ};
  end;

  procedure change{number}(
    arrived in out nocopy entries, moved boolean, said in out pls_integer, event_type number,
    table_key varchar2, column_name varchar2, old_value {type}, new_value {type}
  ) is
    old_text clob;
    new_text clob;
  begin
    if differ{number}(old_value, new_value) then
      said := said + 1;
      if event_type in (2, 3) then
        old_text := text{number}(old_value);
      end if;
      if event_type in (1, 2, 3) then
        new_text := text{number}(new_value);
      end if;
      note(arrived, moved, event_type, table_key, column_name, old_text, new_text);
    end if;
  end;
/

-- made --
-- How a package makes a text by an expression.
begin
  return {text};

-- made_by_query --
-- How a package makes a text that only a query can make.
  made clob;
begin
  select {text} into made from sys.dual;
  return made;

-- verified --
-- Fails, and drops the trigger, where it or its package does not compile.
declare
  told varchar2(4000);
begin
  select max(e.type || ' ' || e.name || ', line ' || e.line || ': ' || substr(e.text, 1, 1000))
    keep (dense_rank first order by e.type, e.sequence)
  into told
  from sys.all_errors e
  where e.attribute = 'ERROR' and (
    e.owner = {package_schema_text} and e.name = {package_text}
    or e.type = 'TRIGGER' and e.owner = {schema_text} and e.name = {trigger_text});
  if told is not null then
    begin
      execute immediate {drop_trigger};
    exception
      when others then
        if sqlcode <> -4080 then raise; end if; -- ORA-04080: it is not there
    end;
    raise_application_error(-20000, 'the trigger does not compile, and was dropped: ' || told);
  end if;
end;

-- drop_trigger --
-- Drops a trigger.
drop trigger {schema}.{trigger}
/
begin
  execute immediate {drop_package};
exception
  when others then
    if sqlcode <> -4043 then raise; end if; -- ORA-04043: it is not there, nor was it of older triggers
end;
/

-- record --
-- Puts on record what of a table is tracked.
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
