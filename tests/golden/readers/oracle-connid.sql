set define off
set sqlblanklines on
whenever sqlerror exit failure

create table "HR"."USR_QUEUE" (
  place number(19) generated always as identity (order),
  "LOGIN" varchar(20) not null,
  action varchar2(10) not null,
  handed number(19), -- the number under which a reader got it last; null: none has
  primary key (place)
)
/

comment on table "HR"."USR_QUEUE" is 'eventlog for connid by LOGIN';

create index "HR"."USR_QUEUE_READ" on "HR"."USR_QUEUE" (handed);

create table "HR"."USR_QUEUE_LAST" (
  handed number(19) primary key
);

insert into "HR"."USR_QUEUE_LAST" (handed) values (0);

create or replace procedure "HR"."USR_QUEUE_NOTE"(changed in "HR"."USR"."LOGIN"%type, done in varchar2) authid definer is
begin
  insert into "HR"."USR_QUEUE" ("LOGIN", action) values ("USR_QUEUE_NOTE".changed, "USR_QUEUE_NOTE".done);
end;
/

declare
  faults varchar2(4000);
begin
  select max(e.type || ' ' || e.name || ', line ' || e.line || ': ' || substr(e.text, 1, 1000))
    keep (dense_rank first order by e.type, e.name, e.sequence)
  into faults
  from sys.all_errors e
  where e.attribute = 'ERROR' and e.owner = 'HR' and e.name in ('USR_QUEUE_NOTE', 'USR_QUEUE_READ', 'USR_QUEUE_CHANGED');
  if faults is not null then
    begin
      execute immediate 'drop trigger ' || '"HR"."USR_QUEUE_CHANGED"';
    exception
      when others then
        if sqlcode <> -4080 then raise; end if; -- ORA-04080: it is not there
    end;
    raise_application_error(-20000, 'a routine for the reader does not compile: ' || faults);
  end if;
end;
/

-- new identities come at the end of the statement, because another row may have had them before
create or replace trigger "HR"."USR_QUEUE_CHANGED"
for insert or update or delete on "HR"."USR"
referencing old as eventlog_old new as eventlog_new
compound trigger
  type identities is table of "HR"."USR"."LOGIN"%type index by pls_integer;
  arrived identities;

after each row is
begin
  if inserting then
    "HR"."USR_QUEUE_NOTE"(:eventlog_new."LOGIN", 'Insert');
  elsif deleting then
    "HR"."USR_QUEUE_NOTE"(:eventlog_old."LOGIN", 'Delete');
  elsif :eventlog_old."LOGIN" = :eventlog_new."LOGIN" then
    "HR"."USR_QUEUE_NOTE"(:eventlog_new."LOGIN", 'Update');
  else
    "HR"."USR_QUEUE_NOTE"(:eventlog_old."LOGIN", 'Delete');
    arrived(arrived.count + 1) := :eventlog_new."LOGIN";
  end if;
end after each row;

after statement is
begin
  for position in 1..arrived.count loop
    "HR"."USR_QUEUE_NOTE"(arrived(position), 'Insert');
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
  where e.attribute = 'ERROR' and e.owner = 'HR' and e.name in ('USR_QUEUE_NOTE', 'USR_QUEUE_READ', 'USR_QUEUE_CHANGED');
  if faults is not null then
    begin
      execute immediate 'drop trigger ' || '"HR"."USR_QUEUE_CHANGED"';
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
drop trigger "HR"."USR_QUEUE_CHANGED"
  ]';
exception
  when others then
    if sqlcode <> -4080 then raise; end if; -- ORA-04080: it is gone already
end;
/

begin
  execute immediate q'[
drop procedure "HR"."USR_QUEUE_NOTE"
  ]';
exception
  when others then
    if sqlcode <> -4043 then raise; end if; -- ORA-04043: it is gone already
end;
/

begin
  execute immediate q'[
drop table "HR"."USR_QUEUE_LAST" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "HR"."USR_QUEUE" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

