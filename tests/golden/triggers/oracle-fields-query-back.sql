set define off
set sqlblanklines on
whenever sqlerror exit failure

create or replace procedure "INDIRECT"."EVENTLOG_EVENT"(
  an_event_type in number,
  a_table_name in varchar2,
  a_table_key in varchar2,
  a_column_name in varchar2 default null,
  an_old_value in clob default null,
  a_new_value in clob default null
) authid definer is
begin
  insert into "EVENTLOG" ("EVENT_TYPE", "PERPETRATOR", "TABLE_NAME", "TABLE_KEY", "COLUMN_NAME", "OLD_VALUE", "NEW_VALUE")
  values (
    "EVENTLOG_EVENT".an_event_type, sys_context('USERENV', 'SESSION_USER'), "EVENTLOG_EVENT".a_table_name,
    "EVENTLOG_EVENT".a_table_key, "EVENTLOG_EVENT".a_column_name, "EVENTLOG_EVENT".an_old_value, "EVENTLOG_EVENT".a_new_value);
end;
/

create or replace function "INDIRECT"."EVENTLOG_KEY_VALUE"(value in varchar2) return varchar2 deterministic is
begin
  return case when regexp_like(value, '[,;''+"=\<>]') then '"' || replace(replace(value, '\', '\\'), '"', '\"') || '"' else value end;
end;
/

-- made once, and never again: to replace a package with a variable breaks every session that uses it
begin
  execute immediate q'[
create package "INDIRECT"."EVENTLOG_SWITCH" authid definer is
  is_off boolean := false;
end;
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/

create or replace package "INDIRECT"."EVENTLOG_CAPTURE" authid definer is
  procedure off(reason in varchar2);
  procedure resume;
  function is_off return boolean;
end;
/

create or replace package body "INDIRECT"."EVENTLOG_CAPTURE" is
  procedure off(reason in varchar2) is
    pragma autonomous_transaction; -- the line stays, whatever becomes of the load
  begin
    insert into "EVENTLOG_NOTICE" (username, kind, session_id, words)
    values (
      sys_context('USERENV', 'SESSION_USER'), 'capture off', sys_context('USERENV', 'SID'), off.reason);
    commit;
    "INDIRECT"."EVENTLOG_SWITCH".is_off := true;
  end;

  procedure resume is
  begin
    "INDIRECT"."EVENTLOG_SWITCH".is_off := false;
  end;

  function is_off return boolean is
  begin
    return "INDIRECT"."EVENTLOG_SWITCH".is_off;
  end;
end;
/

create or replace package "INDIRECT"."EVENTLOG_LEADERSHIP" authid definer is
  procedure hold;
  function held return number;
end;
/

create or replace package body "INDIRECT"."EVENTLOG_LEADERSHIP" is
  answer number; -- of the request, in this session

  procedure hold is
  begin
    -- a name of its own, not one of dbms_lock: what the owner was not granted must not break the others
    execute immediate 'begin :answer := sys.dbms_lock.request(:id, 6, 0, false); end;'
    using out answer, in sys.dbms_utility.get_hash_value('INDIRECT' || '.' || 'EVENTLOG_LOCK', 0, 1073741824);
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
  where e.attribute = 'ERROR' and e.owner = 'INDIRECT' and e.name in ('EVENTLOG_EVENT', 'EVENTLOG_KEY_VALUE', 'EVENTLOG_CAPTURE', 'EVENTLOG_CAPTURE_OFF', 'EVENTLOG_CAPTURE_ON', 'EVENTLOG_CAPTURE_IS_OFF', 'EVENTLOG_SWITCH', 'EVENTLOG_LEADERSHIP');
  if told is not null then
    raise_application_error(-20000, 'a routine of the log does not compile: ' || told);
  end if;
end;
/

create or replace package "INDIRECT"."EVENTLOG$USR$d62fae47db30d497" authid definer is
  type entry is record (
    event_type number(10),
    table_key varchar2(32767),
    column_name varchar2(4000),
    old_value clob,
    new_value clob
  );
  type entries is table of entry index by pls_integer;
  function capturing return boolean;
  function keyed(k1 varchar2, k2 number) return varchar2;
  function unlike(old_key varchar2, new_key varchar2) return boolean;
  procedure note(
    arrived in out nocopy entries, moved boolean, event_type number, table_key varchar2, column_name varchar2,
    old_value clob, new_value clob
  );
  procedure flush(arrived in out nocopy entries);
  function differ1(old_value timestamp_tz_unconstrained, new_value timestamp_tz_unconstrained) return boolean;
  procedure change1(
    arrived in out nocopy entries, moved boolean, said in out pls_integer, event_type number,
    table_key varchar2, column_name varchar2, old_value timestamp_tz_unconstrained, new_value timestamp_tz_unconstrained
  );
  function differ2(old_value raw, new_value raw) return boolean;
  procedure change2(
    arrived in out nocopy entries, moved boolean, said in out pls_integer, event_type number,
    table_key varchar2, column_name varchar2, old_value raw, new_value raw
  );
  function differ3(old_value number, new_value number) return boolean;
  procedure change3(
    arrived in out nocopy entries, moved boolean, said in out pls_integer, event_type number,
    table_key varchar2, column_name varchar2, old_value number, new_value number
  );
end;
/

create or replace package body "INDIRECT"."EVENTLOG$USR$d62fae47db30d497" is
  -- no variable stands here: a package without any is replaced without harm to sessions that use it
  function capturing return boolean is
  begin
    return not "INDIRECT"."EVENTLOG_SWITCH".is_off;
  end;

  function keyed(k1 varchar2, k2 number) return varchar2 is
  begin
    return 'SITE='
    || case when regexp_like(k1, '[,;''+"=\<>]') then '"' || replace(replace(k1, '\', '\\'), '"', '\"') || '"' else k1 end
    || '+IDU='
    || to_char(k2, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''');
  end;

  function unlike(old_key varchar2, new_key varchar2) return boolean is
  begin
    return sys.utl_raw.cast_to_raw(old_key) <> sys.utl_raw.cast_to_raw(new_key);
  end;

  procedure put(
    event_type number, table_key varchar2, column_name varchar2, old_value clob, new_value clob
  ) is
  begin
    insert into "INDIRECT"."EVENTLOG" (
      "EVENT_TYPE", "PERPETRATOR", "TABLE_NAME", "TABLE_KEY", "COLUMN_NAME", "OLD_VALUE", "NEW_VALUE")
    values (
      put.event_type, sys_context('USERENV', 'SESSION_USER'), 'USR', put.table_key, put.column_name,
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

  function eventlog_base64(value blob) return clob is
    made clob;
    piece varchar2(32767);
    place integer := 1;
  begin
    if value is null then
      return null;
    end if;
    sys.dbms_lob.createtemporary(made, true, sys.dbms_lob.call);
    while place <= sys.dbms_lob.getlength(value) loop
      -- a multiple of three, lest padding stand within; utl_encode ends each line of 64 characters
      piece := sys.utl_raw.cast_to_varchar2(sys.utl_encode.base64_encode(sys.dbms_lob.substr(value, 12000, place)));
      piece := translate(piece, 'A' || chr(13) || chr(10), 'A');
      sys.dbms_lob.writeappend(made, length(piece), piece);
      place := place + 12000;
    end loop;
    return made;
  end;

  function text1(value timestamp_tz_unconstrained) return clob is
  begin
    return to_char(sys_extract_utc(value), 'YYYY-MM-DD HH24:MI:SS.FF6', 'NLS_CALENDAR=GREGORIAN');
  end;

  function differ1(old_value timestamp_tz_unconstrained, new_value timestamp_tz_unconstrained) return boolean is
  begin
    return (old_value is null and new_value is not null or old_value is not null and new_value is null or old_value <> new_value);
  end;

  procedure change1(
    arrived in out nocopy entries, moved boolean, said in out pls_integer, event_type number,
    table_key varchar2, column_name varchar2, old_value timestamp_tz_unconstrained, new_value timestamp_tz_unconstrained
  ) is
    old_text clob;
    new_text clob;
  begin
    if differ1(old_value, new_value) then
      said := said + 1;
      if event_type in (2, 3) then
        old_text := text1(old_value);
      end if;
      if event_type in (1, 2, 3) then
        new_text := text1(new_value);
      end if;
      note(arrived, moved, event_type, table_key, column_name, old_text, new_text);
    end if;
  end;

  function text2(value raw) return clob is
  begin
    return eventlog_base64(to_blob(value));
  end;

  function differ2(old_value raw, new_value raw) return boolean is
  begin
    return (old_value is null and new_value is not null or old_value is not null and new_value is null or old_value <> new_value);
  end;

  procedure change2(
    arrived in out nocopy entries, moved boolean, said in out pls_integer, event_type number,
    table_key varchar2, column_name varchar2, old_value raw, new_value raw
  ) is
    old_text clob;
    new_text clob;
  begin
    if differ2(old_value, new_value) then
      said := said + 1;
      if event_type in (2, 3) then
        old_text := text2(old_value);
      end if;
      if event_type in (1, 2, 3) then
        new_text := text2(new_value);
      end if;
      note(arrived, moved, event_type, table_key, column_name, old_text, new_text);
    end if;
  end;

  function text3(value number) return clob is
  begin
    return regexp_replace(to_char(value, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)\.', '\10.');
  end;

  function differ3(old_value number, new_value number) return boolean is
  begin
    return (old_value is null and new_value is not null or old_value is not null and new_value is null or old_value <> new_value);
  end;

  procedure change3(
    arrived in out nocopy entries, moved boolean, said in out pls_integer, event_type number,
    table_key varchar2, column_name varchar2, old_value number, new_value number
  ) is
    old_text clob;
    new_text clob;
  begin
    if differ3(old_value, new_value) then
      said := said + 1;
      if event_type in (2, 3) then
        old_text := text3(old_value);
      end if;
      if event_type in (1, 2, 3) then
        new_text := text3(new_value);
      end if;
      note(arrived, moved, event_type, table_key, column_name, old_text, new_text);
    end if;
  end;
end;
/

declare
  told varchar2(4000);
begin
  select max(e.type || ' ' || e.name || ', line ' || e.line || ': ' || substr(e.text, 1, 1000))
    keep (dense_rank first order by e.type, e.sequence)
  into told
  from sys.all_errors e
  where e.attribute = 'ERROR' and (
    e.owner = 'INDIRECT' and e.name = 'EVENTLOG$USR$d62fae47db30d497'
    or e.type = 'TRIGGER' and e.owner = 'INDIRECT' and e.name = 'EVENTLOG$USR');
  if told is not null then
    begin
      execute immediate 'drop trigger "INDIRECT"."EVENTLOG$USR"';
    exception
      when others then
        if sqlcode <> -4080 then raise; end if; -- ORA-04080: it is not there
    end;
    raise_application_error(-20000, 'the trigger does not compile, and was dropped: ' || told);
  end if;
end;
/

create or replace trigger "INDIRECT"."EVENTLOG$USR"
for insert or update on "INDIRECT"."USR"
compound trigger
  -- eventlog track {"delete": null, "insert": 7, "update": 8, "without": ["bio", "BIO"]}
  -- of "INDIRECT"."EVENTLOG", through "INDIRECT"."EVENTLOG$USR$d62fae47db30d497" 66d4c7ee9c90c92c
  arrived "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".entries; -- rows of new keys, which come after all deletes of the statement
  capturing boolean := "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".capturing;
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
    old_key := "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".keyed(:old."SITE",
      :old."IDU");
  end if;
  if not deleting then
    new_key := "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".keyed(:new."SITE",
      :new."IDU");
  end if;
  if updating then
    moved := "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".unlike(old_key, new_key);
  end if;
  if moved or old_key is null then
    "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".change1(arrived, moved, said, 7, new_key, 'BORN', null, :new."BORN");
    "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".change2(arrived, moved, said, 7, new_key, 'PHOTO', null, :new."PHOTO");
    "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".change3(arrived, moved, said, 7, new_key, 'AMOUNT', null, :new."AMOUNT");
    if said = 0 then
      "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".note(arrived, moved, 7, new_key, 'BORN', null, null);
    end if;
  elsif new_key is not null then
    "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".change1(arrived, false, said, 8, new_key, 'BORN', :old."BORN", :new."BORN");
    "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".change2(arrived, false, said, 8, new_key, 'PHOTO', :old."PHOTO", :new."PHOTO");
    "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".change3(arrived, false, said, 8, new_key, 'AMOUNT', :old."AMOUNT", :new."AMOUNT");
  end if;
end after each row;

after statement is
begin
  "INDIRECT"."EVENTLOG$USR$d62fae47db30d497".flush(arrived);
end after statement;

end;
/

declare
  told varchar2(4000);
begin
  select max(e.type || ' ' || e.name || ', line ' || e.line || ': ' || substr(e.text, 1, 1000))
    keep (dense_rank first order by e.type, e.sequence)
  into told
  from sys.all_errors e
  where e.attribute = 'ERROR' and (
    e.owner = 'INDIRECT' and e.name = 'EVENTLOG$USR$d62fae47db30d497'
    or e.type = 'TRIGGER' and e.owner = 'INDIRECT' and e.name = 'EVENTLOG$USR');
  if told is not null then
    begin
      execute immediate 'drop trigger "INDIRECT"."EVENTLOG$USR"';
    exception
      when others then
        if sqlcode <> -4080 then raise; end if; -- ORA-04080: it is not there
    end;
    raise_application_error(-20000, 'the trigger does not compile, and was dropped: ' || told);
  end if;
end;
/

