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
/
