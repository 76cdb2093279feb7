-- Run again, it changes nothing.
set client_min_messages = warning;
create schema if not exists indirect;

create table if not exists indirect.usr (
    idu integer not null generated always as identity,
    fname varchar(64),
    lname varchar(64),
    photo bytea,
    constraint pk_usr_idu primary key (idu)
);

do $$ begin create role hr login password 'only-for-this-demo'; exception when duplicate_object then null; end $$;
grant usage on schema indirect to hr;
grant select, insert, update, delete on indirect.usr to hr;
