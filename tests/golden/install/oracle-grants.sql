set define off
set sqlblanklines on
whenever sqlerror exit failure

grant select, update ("STATUS", "EVENT_TYPE"), delete on "EVENTLOG" to "PUBLISHER";

grant select, update on "EVENTLOG_STATE" to "PUBLISHER";

grant select, update on "EVENTLOG_LOCK" to "PUBLISHER";

grant select, insert, update, delete on "EVENTLOG_BATCH" to "PUBLISHER";

grant select, insert, delete on "EVENTLOG_ANSWER" to "PUBLISHER";

grant select, insert, delete on "EVENTLOG_TRY" to "PUBLISHER";

grant select, insert, delete on "EVENTLOG_SENT" to "PUBLISHER";

grant select, insert, update, delete on "EVENTLOG_RETRY" to "PUBLISHER";

grant select, insert, update, delete on "EVENTLOG_HELD" to "PUBLISHER";

grant select, insert, update, delete on "EVENTLOG_FAILED" to "PUBLISHER";

grant select, insert on "EVENTLOG_NOTICE" to "PUBLISHER";

grant select on "EVENTLOG_TRACKED" to "PUBLISHER";

grant select on "EVENTLOG_VERSION" to "PUBLISHER";

grant select, update on "EVENTLOG_KNOWN" to "PUBLISHER";

grant execute on "EVENTLOG_LEADERSHIP" to "PUBLISHER";

begin
  execute immediate q'[grant select on "EVENTLOG_SEQUENCE" to "PUBLISHER"]';
exception
  when others then
    if sqlcode not in (-942, -2289, -4043) then raise; end if; -- an attached log may have no such sequence
end;
/

