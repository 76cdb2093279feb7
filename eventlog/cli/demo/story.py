"""What happens in the demo: the original text's sample table, and changes that show the event types."""

from __future__ import annotations

from typing import NamedTuple

TABLES = """\
create schema indirect;
create table indirect.usr (
  idu integer primary key, fname varchar(64), lname varchar(64), photo bytea);
create table indirect.usr_phone (
  idu integer references indirect.usr on delete cascade, phoneno text);"""

# hr is an application's user. It has no right on the log: the triggers write it. dba may log by hand.
USERS = """\
create role hr;
grant usage on schema indirect to hr;
grant select, insert, update, delete on indirect.usr, indirect.usr_phone to hr;
create role dba superuser"""

ARCHIVE = "received.sqlite"
RECEIVE = f"eventlog receive --port 0 --file {ARCHIVE}"
PUBLISH = "eventlog run --sink http --http-url"
AUDIT = f"eventlog audit --state --delivered {ARCHIVE}"
BACKLOG = "eventlog backlog --from log --to xds --finish -o documents"

RECEIVERS = (
    "Who wants these documents? An identity manager: they are what NetIQ Identity Manager's JDBC driver "
    "sends to its engine. Any program that takes XML by HTTP can have them too."
)
REPEATED = (
    "the receiver had them, but the publisher died before it recorded the answer. A receiver recognises "
    "them by these event-ids and changes nothing twice."
)


class StoryStep(NamedTuple):
    title: str
    text: str
    sql: str
    track: str = ""  # the command by which usr is tracked from here on
    user: str = "hr"


STEPS = (
    StoryStep(
        "A new person",
        "Type 1 logs a row for each value. The publisher reads them and sends one document.",
        "insert into indirect.usr values (1, 'Jack', 'Frost', null);",
        "eventlog track indirect.usr --insert 1 --update 2 --child indirect.usr_phone.phoneno",
    ),
    StoryStep(
        "A name changes, and a phone number is added",
        "Type 2 removes the old value and adds the new one. A row of a child table is a value of its parent.",
        """\
update indirect.usr set lname = 'O''Neill & Sons' where idu = 1;
insert into indirect.usr_phone values (1, '555-1111');""",
    ),
    StoryStep(
        "Less to log, more to read",
        "Types 5 and 6 log only which row it was. Its values are read as the event leaves, so these three "
        "changes make one document. It is a modify that replaces each value (<remove-all-values/>), so it "
        "ends alike whether the receiver has the object or not.",
        """\
insert into indirect.usr values (2, 'Jane', 'Poe', null);
update indirect.usr set lname = 'Doe' where idu = 2;
update indirect.usr set photo = '\\xcafe' where idu = 2;""",
        "eventlog track indirect.usr",
    ),
    StoryStep(
        "A person leaves before her arrival was published",
        "Of a row that is gone nothing can be read. The delete is sent.",
        """\
insert into indirect.usr values (3, 'Ann', 'Onymous', null);
delete from indirect.usr where idu = 3;""",
    ),
    StoryStep(
        "A wrong row",
        "A person logs nonsense by hand. Only that row fails: its status becomes E, and its reason is kept.",
        "select indirect.eventlog_event(6, 'salary', 'idu=1; drop table usr');",
        user="dba",
    ),
)

CROWD = 1_000
HIRED = "insert into indirect.usr\n  select n, 'F' || n, 'L' || n from generate_series(1001, 2000) n;"
DEADLY = CROWD * 2 // 5  # documents that come before the publisher is killed

MERGED_PEOPLE = 10_000
MERGED = "insert into indirect.usr\n  select n, 'F' || n, 'L' || n from generate_series(10001, 20000) n;"
SPARK_TIME = "This takes about a minute, most of it for the start of Spark"
ASK = "The last section is on Spark and takes about a minute: press s to skip it, any other key to see it"

NEXT = (
    ("eventlog demo --keep", "the same, and the database stays up"),
    ("eventlog install --url postgresql://…", "yours: docs/start/quick-start.md"),
    ("eventlog import-config driver.xml", "the settings of a driver of yours"),
)
