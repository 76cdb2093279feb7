create table if not exists {log} (
  {record_id} bigint not null auto_increment,
  {status} char(1) not null default 'N',
  {event_type} integer not null,
  {event_time} datetime(6) not null default (utc_timestamp(6)),
  {perpetrator} text default (left(user(), char_length(user()) - locate('@', reverse(user())))),
  {table_name} text not null,
  {table_key} longtext not null,
  {column_name} text,
  {old_value} longtext,
  {new_value} longtext,
  constraint {log_key} primary key ({record_id}),
  key {log_pending} ({status}, {record_id})
) engine = InnoDB character set utf8mb4 collate {collation}
/
