drop procedure if exists `eventlog_event`;

drop function if exists `eventlog_key_value`;

drop procedure if exists `eventlog_capture_off`;

drop procedure if exists `eventlog_capture_on`;

drop table if exists `eventlog`;

drop table if exists `eventlog_known`;

drop table if exists `eventlog_slot`;

drop table if exists `eventlog_try`;

drop table if exists `eventlog_answer`;

drop table if exists `eventlog_sent`;

drop table if exists `eventlog_held`;

drop table if exists `eventlog_retry`;

drop table if exists `eventlog_tracked`;

drop table if exists `eventlog_notice`;

drop table if exists `eventlog_resync`;

drop table if exists `eventlog_failed`;

drop table if exists `eventlog_batch`;

drop table if exists `eventlog_state`;

drop table if exists `eventlog_version`;

