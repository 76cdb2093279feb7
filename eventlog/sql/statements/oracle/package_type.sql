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
      if event_type = 2 then
        old_text := text{number}(old_value);
      end if;
      if event_type in (1, 2, 3) then
        new_text := text{number}(new_value);
      end if;
      note(arrived, moved, event_type, table_key, column_name, old_text, new_text);
    end if;
  end;
/
