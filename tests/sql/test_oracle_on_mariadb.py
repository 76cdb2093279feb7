"""What Oracle's triggers and their packages do with a row, executed on MariaDB in sql_mode=ORACLE, as far as
that mode goes.

It runs :new and :old, packages, ||, :=, if/elsif, is null and calls without `call`. What it lacks is listed
in ADAPTED, each with the reason; everything else of the text runs as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from eventlog.sql.relation import Choice
from eventlog.sql.trigger_rows import Trigger, triggers_of
from tests.kit.databases import Database
from tests.sql.samples import subject
from tests.sql.tracked import Logged, Tracked, tracked

pytestmark = pytest.mark.quick


class Adaptation(NamedTuple):
    pattern: str
    instead: str
    reason: str


_NAME = r'"INDIRECT"\.("EVENTLOG\$USR[^"]*")'
ADAPTED = (
    Adaptation(r"  if not capturing then\n    return;\n  end if;\n", "", "no return from a trigger"),
    Adaptation(_NAME, r"\1", "a package has no schema before it"),
    Adaptation(r'"INDIRECT"\."EVENTLOG"', "eventlog", "nor has the log of a test"),
    Adaptation(
        r"(?s)  function capturing return boolean is.*?\n  end;\n", "", "the switch is another package's"
    ),
    Adaptation(r"(?s)  function copy_of.*?(?=  procedure note)", "", "no dbms_lob"),
    Adaptation(r"(?s)    if not moved then\n(.*?)      return;.*?\n  end;", r"\1  end;", "no collections"),
    Adaptation(r"(?s)    this entry;\n", "", "no records"),
    Adaptation(r"(?s)  procedure flush.*?\n  end;\n", "", "no collections"),
    Adaptation(r"(?s)  function eventlog_base64.*?\n  end;\n", "", "no utl_encode"),
    Adaptation(r"(?s)  type entry is.*?pls_integer;\n", "", "no records, no collections"),
    Adaptation(r"  function capturing return boolean;\n", "", "as above"),
    Adaptation(r"  procedure flush.*?;\n", "", "as above"),
    Adaptation(r"sys_context\('USERENV', 'SESSION_USER'\)", "user()", "no sys_context"),
    Adaptation(r"arrived in out nocopy entries, ", "", "no collections"),
    Adaptation(r"\(arrived, ", "(", "no collections"),
    Adaptation(r"\bput\.", "", "a parameter has no name of its procedure before it"),
    Adaptation(r"pls_integer", "int", "no such type"),
    Adaptation(r"timestamp_tz_unconstrained", "datetime(6)", "no timestamps with time zone"),
    Adaptation(r"\braw\b(?!\()", "longblob", "its raw has a length"),
    Adaptation(r"\bnumber\b(?!\()", "double", "its number without digits is a double, except as a parameter"),
    Adaptation(r"varchar2\(32767\)", "varchar2(4000)", "its texts are shorter"),
    Adaptation(r"(?<=[a-z0-9] )varchar2(?=[,)\n;])", "varchar2(4000)", "its parameters have a length"),
    Adaptation(r"return varchar2 ", "return varchar2(4000) ", "so have its results"),
    Adaptation(
        r"regexp_replace\((to_char\([^()]+\)), '[^']+', '[^']+'\)",
        r"\1",
        "its numbers have their leading zero",
    ),
    Adaptation(r"to_char\((\w+), 'TM9', 'NLS[^)]+'\)", r"cast(\1 as char)", "no TM9, no NLS parameters"),
    Adaptation(
        r"to_char\(sys_extract_utc\((\w+)\), '[^']+', '[^']+'\)",
        r"cast(\1 as char)",
        "no timestamps with time zone, no FF6",
    ),
    Adaptation(r"eventlog_base64\(to_blob\((\w+)\)\)", r"to_base64(\1)", "no utl_encode"),
    Adaptation(r"sys\.utl_raw\.cast_to_raw\((\w+)\)", r"cast(\1 as binary)", "no utl_raw"),
    Adaptation(r"sys\.dbms_lob\.compare\((\w+), (\w+)\)", r"strcmp(\1, \2)", "no dbms_lob"),
    Adaptation(r"regexp_like\((\w+), '([^']|'')+'\)", r"""\1 regexp '[,;''+"=\\\\<>]'""", "no regexp_like"),
)
USR = """
create table "USR" (
  "IDU" int, "SITE" varchar(64), "BORN" datetime(6), "PHOTO" varbinary(200), "AMOUNT" decimal(10,2),
  "BIO" longtext,
  primary key ("SITE", "IDU")
)
"""
_NO_OTHER_ROW = {"insert": (":old.", ":new."), "delete": (":new.", ":old."), "update": ("", "")}


def adapted(text: str) -> str:
    for adaptation in ADAPTED:
        text = re.sub(adaptation.pattern, adaptation.instead, text)
    return text


@pytest.fixture
def oracle_mode(database: Database) -> Iterator[Tracked]:
    if database.dialect.name != "mariadb":
        pytest.skip("sql_mode=ORACLE is MariaDB's alone")
    with tracked(database) as tracked_log:
        yield tracked_log


def install(tracking: Tracked, choice: Choice) -> None:
    tracking.run("set sql_mode = 'ORACLE,NO_BACKSLASH_ESCAPES'", USR)
    for trigger in triggers_of(subject("oracle", choice)):
        head, body = (adapted(text).replace("authid definer ", "") for text in trigger.create[:2])
        tracking.run("set sql_mode = 'ORACLE,NO_BACKSLASH_ESCAPES'", head, body, *of_events(trigger))


def of_events(trigger: Trigger) -> Iterator[str]:
    """Yield a trigger for each event: MariaDB 10.11 has no compound ones, and a row is old or new there."""
    text = adapted(trigger.body)
    row = re.search(r"(?s)( {2}old_key .*?)\nafter each row is\n(.*?)end after each row;", text)
    assert row is not None
    for event in ("insert", "update", "delete"):
        text = (row[1] + row[2]).replace(*_NO_OTHER_ROW[event])
        for name in ("insert", "update", "delete"):
            text = re.sub(rf"\b{name.removesuffix('e')}ing\b", str(name == event).lower(), text)
        name = f"{event} {trigger.name}"
        yield f'create trigger "{name}" after {event} on "USR" for each row\ndeclare\n{text}end'


INSERT = "insert into \"USR\" values (1, 'a+b', '2025-01-02 03:04:05', x'aaaa', 1.50, null)"
KEY = 'SITE="a+b"+IDU=1'


@pytest.mark.parametrize(
    ("choice", "inserted", "updated"),
    [
        (Choice(), [Logged(5, KEY)], [Logged(6, KEY)]),
        (
            Choice(insert=7, update=8, columns=("PHOTO", "BIO")),
            [Logged(7, KEY, "PHOTO")],
            [Logged(8, KEY, "PHOTO"), Logged(8, KEY, "BIO")],
        ),
        (
            Choice(insert=1, update=2),
            [
                Logged(1, KEY, "BORN", None, "2025-01-02 03:04:05.000000"),
                Logged(1, KEY, "PHOTO", None, "qqo="),
                Logged(1, KEY, "AMOUNT", None, "1.5"),
            ],
            [Logged(2, KEY, "PHOTO", "qqo=", "u7s="), Logged(2, KEY, "BIO", None, "x")],
        ),
        (
            Choice(insert=1, update=3, columns=("PHOTO",)),
            [Logged(1, KEY, "PHOTO", None, "qqo=")],
            [Logged(3, KEY, "PHOTO", "qqo=", "u7s=")],
        ),
    ],
)
def test_what_is_noted_runs(
    oracle_mode: Tracked, choice: Choice, inserted: list[Logged], updated: list[Logged]
) -> None:
    install(oracle_mode, choice)
    quotes = "set sql_mode = 'ANSI_QUOTES'"
    assert oracle_mode.after(quotes, INSERT) == inserted
    assert oracle_mode.after(quotes, 'update "USR" set "PHOTO" = x\'bbbb\', "BIO" = \'x\'') == updated
    assert oracle_mode.after(quotes, 'update "USR" set "BIO" = "BIO"') == []
    moved = oracle_mode.after(quotes, 'update "USR" set "IDU" = 2')
    assert moved[0] == Logged(4, KEY)
    assert {row.key for row in moved[1:]} == {'SITE="a+b"+IDU=2'}
    assert {row.type for row in moved[1:]} == {choice.insert}
    assert oracle_mode.after(quotes, 'delete from "USR"') == [Logged(4, 'SITE="a+b"+IDU=2')]
