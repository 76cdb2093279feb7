"""What happens in the demo: the original text's sample table, and changes that show the event types."""

from __future__ import annotations

from typing import NamedTuple

from eventlog.sql.choice import Choice

SCHEMA = """\
create schema indirect;
create table indirect.usr (
    idu   integer not null,
    fname varchar(64),
    lname varchar(64),
    photo bytea,
    constraint pk_usr_idu primary key (idu)
);
create table indirect.usr_phone (
    idu     integer not null references indirect.usr (idu) on delete cascade,
    phoneno varchar(64) not null
);
create view indirect.view_usr as
    select usr.idu as pk_idu, lname as sv_lname, phoneno as mv_phoneno
    from indirect.usr left join indirect.usr_phone using (idu);"""

# Changes come from an application's user. It has no right on the log: the triggers write it.
PEOPLE = """\
create role hr;
grant usage on schema indirect to hr;
grant select, insert, update, delete on indirect.usr, indirect.usr_phone to hr;"""

TABLES = ("indirect.usr", "indirect.view_usr")
PHONES = "indirect.usr_phone.phoneno"
FIELDS = Choice(insert=1, update=2, children=(PHONES,))
NO_OLD_VALUES = Choice(insert=1, update=3)
ROWS = Choice()


class Step(NamedTuple):
    title: str
    told: str
    sql: str
    choice: Choice | None = None  # how usr is tracked from here on
    user: str = "hr"


STEPS = (
    Step(
        "A new person",
        "Types 1, 2 and 4 carry values: a row for each field, and nothing is read back.",
        "insert into indirect.usr values (1, 'Jack', 'Frost', '\\xaaaa');",
        FIELDS,
    ),
    Step(
        "A name changes, and a photo",
        "Type 2 removes the old value and adds the new one.",
        "update indirect.usr set fname = 'John', lname = 'Doe', photo = '\\xbbbb' where idu = 1;",
    ),
    Step(
        "Phone numbers",
        "Rows of the child table are values of their parent's attribute.",
        "insert into indirect.usr_phone values (1, '555-1111'), (1, '555-2222');",
    ),
    Step(
        "Another event type",
        "Type 3 needs no old value: all values go, the new one comes.",
        "update indirect.usr set lname = 'O''Neill & Sons' where idu = 1;",
        NO_OLD_VALUES,
    ),
    Step(
        "Less to log, more to read",
        "Types 5 and 6 log only which row it was; its values are read as the event leaves. "
        "Of these three changes one document is made.",
        """\
insert into indirect.usr values (2, 'Jane', 'Poe', null);
update indirect.usr set lname = 'Doe' where idu = 2;
update indirect.usr set photo = '\\xcafe' where idu = 2;""",
        ROWS,
    ),
    Step(
        "A view",
        "What no trigger can see is logged by hand; pk_, sv_ and mv_ say what a view's columns are.",
        "select indirect.eventlog_event(6, 'view_usr', 'pk_idu=1');",
        user="eventlog",
    ),
    Step(
        "Somebody leaves, before anyone heard of her",
        "A query-back event whose row is gone has no effect; the delete is sent.",
        """\
insert into indirect.usr values (3, 'Ann', 'Onymous', null);
delete from indirect.usr where idu = 3;""",
    ),
    Step(
        "A wrong row",
        "It costs that row, never the channel: its letter becomes E, its reason is kept.",
        "select indirect.eventlog_event(6, 'salary', 'idu=1; drop table usr');",
        user="eventlog",
    ),
)
