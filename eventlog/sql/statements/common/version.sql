create table if not exists {version} (
  version_num varchar(32) not null,
  constraint {version_pkc} primary key (version_num)
)
/
insert into {version} (version_num)
select {revision} from (select count(*) as installed from {version}) as v where installed = 0
/
update {version} set version_num = {revision} where version_num < {revision}
/
