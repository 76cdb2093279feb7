\set ON_ERROR_STOP on
begin;

grant select, update ("status", "event_type"), delete on "eventlog" to "publisher";

grant select, update on "eventlog_state" to "publisher";

grant select, insert, update, delete on "eventlog_batch" to "publisher";

grant select, insert, delete on "eventlog_answer" to "publisher";

grant select, insert, delete on "eventlog_try" to "publisher";

grant select, insert, delete on "eventlog_sent" to "publisher";

grant select, insert, update, delete on "eventlog_retry" to "publisher";

grant select, insert, update, delete on "eventlog_held" to "publisher";

grant select, insert, update, delete on "eventlog_failed" to "publisher";

grant select, insert on "eventlog_notice" to "publisher";

grant select on "eventlog_tracked" to "publisher";

grant select on "eventlog_version" to "publisher";

grant select, update on "eventlog_known" to "publisher";

do 'declare
  ids text := pg_catalog.pg_get_serial_sequence(''"eventlog"'', ''record_id'');
begin
  if ids is not null then execute ''grant select on sequence '' || ids || '' to '' || ''"publisher"''; end if;
end';

commit;
