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
