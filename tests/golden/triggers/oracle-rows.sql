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
  insert into "INDIRECT"."EVENTLOG" ("EVENT_TYPE", "PERPETRATOR", "TABLE_NAME", "TABLE_KEY", "COLUMN_NAME", "OLD_VALUE", "NEW_VALUE")
  values (an_event_type, sys_context('USERENV', 'SESSION_USER'), a_table_name, a_table_key, a_column_name, an_old_value, a_new_value);
end;
/

create or replace function "INDIRECT"."EVENTLOG_KEY_VALUE"(value in varchar2) return varchar2 deterministic is
begin
  return case when regexp_like(value, '[,;''+"=\<>]') then '"' || replace(replace(value, '\', '\\'), '"', '\"') || '"' else value end;
end;
/

create or replace package "INDIRECT"."EVENTLOG_CAPTURE" authid definer is
  procedure off(reason in varchar2);
  procedure resume;
  function is_off return boolean;
end;
/

create or replace package body "INDIRECT"."EVENTLOG_CAPTURE" is
  switched_off boolean := false;

  procedure off(reason in varchar2) is
    pragma autonomous_transaction; -- the line stays, whatever becomes of the load
  begin
    insert into "INDIRECT"."EVENTLOG_NOTICE" (username, kind, words)
    values (sys_context('USERENV', 'SESSION_USER'), 'capture off', sys_context('USERENV', 'SID') || ': ' || reason);
    commit;
    switched_off := true;
  end;

  procedure resume is
  begin
    switched_off := false;
  end;

  function is_off return boolean is
  begin
    return switched_off;
  end;
end;
/

create or replace trigger "INDIRECT"."EVENTLOG$USR"
for insert or update or delete on "INDIRECT"."USR"
compound trigger
  -- eventlog track {}
  type entry is record (
    event_type number(10),
    table_key varchar2(32767),
    column_name varchar2(4000),
    old_value clob,
    new_value clob
  );
  type entries is table of entry index by pls_integer;
  changed entries;
  departed entries; -- of rows that got another key: all deletes of the statement first
  arrived entries;
  who varchar2(4000) := sys_context('USERENV', 'SESSION_USER');
  capturing boolean := not "INDIRECT"."EVENTLOG_CAPTURE".is_off;

  procedure flush(noted in out nocopy entries) is
    how_many integer := noted.count;
  begin
    forall i in 1..how_many
      insert into "INDIRECT"."EVENTLOG" ("EVENT_TYPE", "PERPETRATOR", "TABLE_NAME", "TABLE_KEY", "COLUMN_NAME", "OLD_VALUE", "NEW_VALUE")
      values (noted(i).event_type, who, 'USR', noted(i).table_key, noted(i).column_name, noted(i).old_value, noted(i).new_value);
    noted.delete();
  end;

  procedure note(
    noted in out nocopy entries,
    event_type number,
    table_key varchar2,
    column_name varchar2 default null,
    old_value clob default null,
    new_value clob default null
  ) is
    this entry;
  begin
    this.event_type := event_type;
    this.table_key := table_key;
    this.column_name := column_name;
    this.old_value := old_value;
    this.new_value := new_value;
    noted(noted.count + 1) := this;
  end;

after each row is
begin
  if not capturing then
    return;
  end if;
  if inserting then
    note(changed, 5, 'SITE=' || case when regexp_like(:new."SITE", '[,;''+"=\<>]') then '"' || replace(replace(:new."SITE", '\', '\\'), '"', '\"') || '"' else :new."SITE" end || '+IDU=' || to_char(:new."IDU", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''));
  elsif updating then
    if (:old."SITE" is null and :new."SITE" is not null or :old."SITE" is not null and :new."SITE" is null or utl_i18n.string_to_raw(:old."SITE", 'AL32UTF8') <> utl_i18n.string_to_raw(:new."SITE", 'AL32UTF8')) or (:old."IDU" is null and :new."IDU" is not null or :old."IDU" is not null and :new."IDU" is null or :old."IDU" <> :new."IDU") then
      note(departed, 4, 'SITE=' || case when regexp_like(:old."SITE", '[,;''+"=\<>]') then '"' || replace(replace(:old."SITE", '\', '\\'), '"', '\"') || '"' else :old."SITE" end || '+IDU=' || to_char(:old."IDU", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''));
      note(arrived, 5, 'SITE=' || case when regexp_like(:new."SITE", '[,;''+"=\<>]') then '"' || replace(replace(:new."SITE", '\', '\\'), '"', '\"') || '"' else :new."SITE" end || '+IDU=' || to_char(:new."IDU", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''));
    else
      if (:old."BORN" is null and :new."BORN" is not null or :old."BORN" is not null and :new."BORN" is null or :old."BORN" <> :new."BORN") or (:old."PHOTO" is null and :new."PHOTO" is not null or :old."PHOTO" is not null and :new."PHOTO" is null or :old."PHOTO" <> :new."PHOTO") or (:old."AMOUNT" is null and :new."AMOUNT" is not null or :old."AMOUNT" is not null and :new."AMOUNT" is null or :old."AMOUNT" <> :new."AMOUNT") or (:old."BIO" is null and :new."BIO" is not null or :old."BIO" is not null and :new."BIO" is null or dbms_lob.compare(:old."BIO", :new."BIO") <> 0) then
        note(changed, 6, 'SITE=' || case when regexp_like(:new."SITE", '[,;''+"=\<>]') then '"' || replace(replace(:new."SITE", '\', '\\'), '"', '\"') || '"' else :new."SITE" end || '+IDU=' || to_char(:new."IDU", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''));
      end if;
    end if;
  elsif deleting then
    note(changed, 4, 'SITE=' || case when regexp_like(:old."SITE", '[,;''+"=\<>]') then '"' || replace(replace(:old."SITE", '\', '\\'), '"', '\"') || '"' else :old."SITE" end || '+IDU=' || to_char(:old."IDU", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''));
  end if;
  if changed.count >= 1000 then
    flush(changed);
  end if;
end after each row;

after statement is
begin
  flush(changed);
  flush(departed);
  flush(arrived);
end after statement;

end;
/

