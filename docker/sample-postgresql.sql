create schema indirect;

create table indirect.usr (
    idu integer not null generated always as identity,
    fname varchar(64),
    lname varchar(64),
    photo bytea,
    constraint pk_usr_idu primary key (idu)
);

create role hr login password 'only-for-this-demo';
grant usage on schema indirect to hr;
grant select, insert, update, delete on indirect.usr to hr;
