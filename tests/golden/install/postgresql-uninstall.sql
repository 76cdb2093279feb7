\set ON_ERROR_STOP on
begin;

drop function if exists "eventlog_event"(integer, text, text, text, text, text);

drop function if exists "eventlog_key_value"(text);

drop function if exists "eventlog_capture_off"(text);

drop function if exists "eventlog_capture_on"();

drop function if exists "eventlog_capture_is_off"();

do 'declare
  slot text := (select cast(slot_facts as json) ->> ''slot'' from "eventlog_state" where one = 1);
begin
  if slot is not null then
    perform pg_catalog.pg_drop_replication_slot(s.slot_name)
    from pg_catalog.pg_replication_slots s
    where s.slot_name = slot and s.database = pg_catalog.current_database();
    execute pg_catalog.format(''drop publication if exists %I'', slot);
  end if;
end';

drop table if exists "eventlog";

drop table if exists "eventlog_known";

drop table if exists "eventlog_slot";

drop table if exists "eventlog_try";

drop table if exists "eventlog_answer";

drop table if exists "eventlog_sent";

drop table if exists "eventlog_held";

drop table if exists "eventlog_retry";

drop table if exists "eventlog_tracked";

drop table if exists "eventlog_notice";

drop table if exists "eventlog_resync";

drop table if exists "eventlog_failed";

drop table if exists "eventlog_batch";

drop table if exists "eventlog_state";

drop table if exists "eventlog_version";

commit;
