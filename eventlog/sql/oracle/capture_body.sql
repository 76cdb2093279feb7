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
  changes entries;
  left entries; -- of rows that got another key: all deletes of the statement first
  came entries;
  who varchar2(4000) := sys_context('USERENV', 'SESSION_USER');
  capturing boolean := not {capture}.is_off;

  procedure flush(rows in out nocopy entries) is
  begin
    forall i in 1 .. rows.count
      insert into {log} ({event_type}, {perpetrator}, {table_name}, {table_key}, {column_name}, {old_value}, {new_value})
      values (rows(i).event_type, who, {table_text}, rows(i).table_key, rows(i).column_name, rows(i).old_value, rows(i).new_value);
    rows.delete;
  end;

  procedure note(
    rows in out nocopy entries,
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
    rows(rows.count + 1) := this;
  end;

after each row is
begin
  if not capturing then
    return;
  end if;
{rows}
  if changes.count >= 1000 then
    flush(changes);
  end if;
end after each row;

after statement is
begin
  flush(changes);
  flush(left);
  flush(came);
end after statement;

end;
/
