set define off
set sqlblanklines on
whenever sqlerror exit failure

begin
  execute immediate q'[
drop procedure "EVENTLOG_EVENT"
  ]';
exception
  when others then
    if sqlcode <> -4043 then raise; end if; -- ORA-04043: it is gone already
end;
/

begin
  execute immediate q'[
drop function "EVENTLOG_KEY_VALUE"
  ]';
exception
  when others then
    if sqlcode <> -4043 then raise; end if; -- ORA-04043: it is gone already
end;
/

begin
  execute immediate q'[
drop package "EVENTLOG_CAPTURE"
  ]';
exception
  when others then
    if sqlcode <> -4043 then raise; end if; -- ORA-04043: it is gone already
end;
/

begin
  execute immediate q'[
drop package "EVENTLOG_LEADERSHIP"
  ]';
exception
  when others then
    if sqlcode <> -4043 then raise; end if; -- ORA-04043: it is gone already
end;
/

begin
  execute immediate q'[
drop package "EVENTLOG_SWITCH"
  ]';
exception
  when others then
    if sqlcode <> -4043 then raise; end if; -- ORA-04043: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop sequence "EVENTLOG_SEQUENCE"
  ]';
exception
  when others then
    if sqlcode <> -2289 then raise; end if; -- ORA-02289: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_KNOWN" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_SLOT" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_TRY" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_ANSWER" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_SENT" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_HELD" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_RETRY" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_TRACKED" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_NOTICE" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_RESYNC" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_FAILED" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_BATCH" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_LOCK" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_STATE" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

begin
  execute immediate q'[
drop table "EVENTLOG_VERSION" purge
  ]';
exception
  when others then
    if sqlcode <> -942 then raise; end if; -- ORA-00942: it is gone already
end;
/

