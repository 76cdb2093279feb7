-- current --
-- The rows of some keys as they are now.
{functions}select /*+ leading(k) use_nl(t) */ k.n{columns}
from json_table(:keys, '$[*]' columns (n number path '$.n'{typed_paths})) k
join {source} t on {matches}
order by k.n

-- key_collations --
-- The character sets and collations in which the columns of a key are compared.
select null, null, null from dual where :schema is null and :table_name is null and 1 = 0

-- eventlog_base64 --
-- A function that gives the Base64 text of a BLOB of any length.
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
