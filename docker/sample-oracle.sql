alter session set container = freepdb1;

create table indirect.usr (
    idu integer generated always as identity not null,
    fname varchar2(64),
    lname varchar2(64),
    photo blob,
    constraint pk_usr_idu primary key (idu)
);

grant create trigger, create procedure, create sequence, create table to indirect;
