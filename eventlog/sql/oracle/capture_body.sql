compound trigger
  -- {mark}
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
  capturing boolean := not {capture}.is_off;

  procedure flush(noted in out nocopy entries) is
    how_many integer := noted.count;
  begin
    forall i in 1..how_many
      insert into {log} ({event_type}, {perpetrator}, {table_name}, {table_key}, {column_name}, {old_value}, {new_value})
      values (noted(i).event_type, who, {table_text}, noted(i).table_key, noted(i).column_name, noted(i).old_value, noted(i).new_value);
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
{rows}
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
