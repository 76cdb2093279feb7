begin
  execute immediate q'[
create table {version} (
  version_num varchar2(32 char) not null,
  constraint {version_pkc} primary key (version_num)
)
  ]';
exception
  when others then
    if sqlcode <> -955 then raise; end if; -- ORA-00955: it is there already
end;
/
insert into {version} (version_num)
select {revision} from dual where not exists (select null from {version})
/
update {version} set version_num = {revision} where version_num < {revision}
/
commit
/
