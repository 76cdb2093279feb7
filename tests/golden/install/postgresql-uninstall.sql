\set ON_ERROR_STOP on
begin;

drop function if exists "eventlog_event"(integer, text, text, text, text, text);

drop function if exists "eventlog_key_value"(text);

drop function if exists "eventlog_capture_off"(text);

drop function if exists "eventlog_capture_on"();

drop function if exists "eventlog_capture_is_off"();

drop table if exists "eventlog";

drop table if exists "eventlog_known";

drop table if exists "eventlog_slot";

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
