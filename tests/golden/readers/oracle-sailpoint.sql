set define off
set sqlblanklines on
whenever sqlerror exit failure

-- A change of an object that the table names already waits until that row is gone: else who deletes the row
-- that he read would delete a newer one with it.
create table "HR"."USR_DELTA" (
  "LOGIN" varchar(20) primary key,
  action varchar2(10) not null
);

comment on table "HR"."USR_DELTA" is 'eventlog for sailpoint by LOGIN';

create table "HR"."USR_DELTA_WAITING" (
  place number(19) generated always as identity (order),
  "LOGIN" varchar(20) not null,
  action varchar2(10) not null,
  primary key (place)
);

create index "HR"."USR_DELTA_WAITING" on "HR"."USR_DELTA_WAITING" ("LOGIN");

create or replace procedure "HR"."USR_DELTA_NOTE"(changed in "HR"."USR"."LOGIN"%type, done in varchar2) authid definer is
begin
  loop
    begin
      insert into "HR"."USR_DELTA" ("LOGIN", action) values ("USR_DELTA_NOTE".changed, "USR_DELTA_NOTE".done);
      return;
    exception
      when dup_val_on_index then
        null;
    end;
    -- written, not only locked: a reader whose snapshot is older must not delete it
    update "HR"."USR_DELTA" d set d.action = d.action where d."LOGIN" = "USR_DELTA_NOTE".changed;
    if sql%rowcount > 0 then
      insert into "HR"."USR_DELTA_WAITING" ("LOGIN", action) values ("USR_DELTA_NOTE".changed, "USR_DELTA_NOTE".done);
      return;
    end if;
  end loop;
end;
/

-- only after the statement may the table be written to from which it deletes
create or replace trigger "HR"."USR_DELTA_READ"
for delete on "HR"."USR_DELTA"
referencing old as eventlog_old
compound trigger
  type identities is table of "HR"."USR"."LOGIN"%type index by pls_integer;
  deleted identities;
  eventlog_identity "HR"."USR"."LOGIN"%type;

after each row is
begin
  deleted(deleted.count + 1) := :eventlog_old."LOGIN";
end after each row;

after statement is
begin
  for position in 1..deleted.count loop
    eventlog_identity := deleted(position);
    insert into "HR"."USR_DELTA" ("LOGIN", action)
    select w."LOGIN", w.action
    from "HR"."USR_DELTA_WAITING" w
    where w.place = (select max(n.place) from "HR"."USR_DELTA_WAITING" n where n."LOGIN" = eventlog_identity)
      and not exists (select null from "HR"."USR_DELTA" d where d."LOGIN" = w."LOGIN");
    if sql%rowcount > 0 then
      delete from "HR"."USR_DELTA_WAITING" w where w."LOGIN" = eventlog_identity;
    end if;
  end loop;
  deleted.delete();
end after statement;

end;
/

declare
  faults varchar2(4000);
begin
  select max(e.type || ' ' || e.name || ', line ' || e.line || ': ' || substr(e.text, 1, 1000))
    keep (dense_rank first order by e.type, e.name, e.sequence)
  into faults
  from sys.all_errors e
  where e.attribute = 'ERROR' and e.owner = 'HR' and e.name in ('USR_DELTA_NOTE', 'USR_DELTA_READ', 'USR_DELTA_CHANGED');
  if faults is not null then
    begin
      execute immediate 'drop trigger ' || '"HR"."USR_DELTA_CHANGED"';
    exception
      when others then
        if sqlcode <> -4080 then raise; end if; -- ORA-04080: it is not there
    end;
    raise_application_error(-20000, 'a routine for the reader does not compile: ' || faults);
  end if;
end;
/

-- new identities come at the end of the statement, because another row may have had them before
create or replace trigger "HR"."USR_DELTA_CHANGED"
for insert or update or delete on "HR"."USR"
referencing old as eventlog_old new as eventlog_new
compound trigger
  type identities is table of "HR"."USR"."LOGIN"%type index by pls_integer;
  arrived identities;

after each row is
begin
  if inserting then
    "HR"."USR_DELTA_NOTE"(:eventlog_new."LOGIN", 'Insert');
  elsif deleting then
    "HR"."USR_DELTA_NOTE"(:eventlog_old."LOGIN", 'Delete');
  elsif :eventlog_old."LOGIN" = :eventlog_new."LOGIN" then
    "HR"."USR_DELTA_NOTE"(:eventlog_new."LOGIN", 'Update');
  else
    "HR"."USR_DELTA_NOTE"(:eventlog_old."LOGIN", 'Delete');
    arrived(arrived.count + 1) := :eventlog_new."LOGIN";
  end if;
end after each row;

after statement is
begin
  for position in 1..arrived.count loop
    "HR"."USR_DELTA_NOTE"(arrived(position), 'Insert');
  end loop;
  arrived.delete();
end after statement;

end;
/

declare
  faults varchar2(4000);
begin
  select max(e.type || ' ' || e.name || ', line ' || e.line || ': ' || substr(e.text, 1, 1000))
    keep (dense_rank first order by e.type, e.name, e.sequence)
  into faults
  from sys.all_errors e
  where e.attribute = 'ERROR' and e.owner = 'HR' and e.name in ('USR_DELTA_NOTE', 'USR_DELTA_READ', 'USR_DELTA_CHANGED');
  if faults is not null then
    begin
      execute immediate 'drop trigger ' || '"HR"."USR_DELTA_CHANGED"';
    exception
      when others then
        if sqlcode <> -4080 then raise; end if; -- ORA-04080: it is not there
    end;
    raise_application_error(-20000, 'a routine for the reader does not compile: ' || faults);
  end if;
end;
/

begin
  execute immediate q'[
drop trigger "HR"."USR_DELTA_CHANGED"
  ]';
exception
  when others then
    if sqlcode <> -4080 then raise; end if; -- ORA-04080: it is gone already
end;
/

begin
  execute immediate q'[
drop procedure "HR"."USR_DELTA_NOTE"
  ]';
exception
  when others then
    if sqlcode <> -4043 then raise; end if; -- ORA-04043: it is gone already
end;
/

begin
  execute immediate q'[
drop table "HR"."USR_DELTA_WAITING" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "HR"."USR_DELTA" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

