"""What Oracle's triggers note, executed on MariaDB in sql_mode=ORACLE, as far as that mode goes.

It runs :new and :old, ||, :=, if/elsif, is null and calls without `call`. What it lacks is listed in
ADAPTED, each with the reason; everything else of the text runs as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from eventlog.sql.choice import Choice
from eventlog.sql.oracle_triggers import _Writer
from tests.databases import Database
from tests.sql.samples import subject
from tests.sql.tracked import Logged, Tracked, tracked


class Adaptation(NamedTuple):
    pattern: str
    instead: str
    reason: str


_VALUE = r'(:\w+\."\w+")'
ADAPTED = (
    Adaptation(
        r"regexp_replace\((to_char\([^()]+\)), '[^']+', '[^']+'\)",
        r"\1",
        "its numbers have their leading zero",
    ),
    Adaptation(rf"to_char\({_VALUE}, 'TM9', 'NLS[^)]+'\)", r"cast(\1 as char)", "no TM9, no NLS parameters"),
    Adaptation(
        rf"to_char\(sys_extract_utc\({_VALUE}\), '[^']+', '[^']+'\)",
        r"cast(\1 as char)",
        "no timestamps with time zone, no FF6",
    ),
    Adaptation(
        rf"translate\(utl_raw.cast_to_varchar2\(utl_encode.base64_encode\({_VALUE}\)\), "
        r"'A' \|\| chr\(13\) \|\| chr\(10\), 'A'\)",
        r"to_base64(\1)",
        "no utl_raw, utl_encode and translate",
    ),
    Adaptation(rf"utl_i18n.string_to_raw\({_VALUE}, 'AL32UTF8'\)", r"cast(\1 as binary)", "no utl_i18n"),
    Adaptation(rf"dbms_lob.compare\({_VALUE}, {_VALUE}\)", r"strcmp(\1, \2)", "no dbms_lob"),
    Adaptation(
        rf"regexp_like\({_VALUE}, '([^']|'')+'\)", r"""\1 regexp '[,;''+"=\\\\<>]'""", "no regexp_like"
    ),
    Adaptation(
        r"note\((\w+), ([456]), (.+)\);", r"note('\1', \2, \3, null, null, null);", "no default values"
    ),
    Adaptation(r"note\((changed|departed|arrived), ", r"note('\1', ", "no records, no collections"),
)
# No compound triggers and no forall: one trigger an event, and rows go into the log as they are noted.
NOTE = """
create procedure note(place varchar(20), kind integer, k longtext, c text, o longtext, n longtext) as
begin
  insert into eventlog (event_type, table_name, table_key, column_name, old_value, new_value)
  values (kind, 'USR', k, c, o, n);
end
"""
USR = """
create table "USR" (
  "IDU" int, "SITE" varchar(64), "BORN" datetime, "PHOTO" varbinary(200), "AMOUNT" decimal(10,2),
  "BIO" longtext,
  primary key ("SITE", "IDU")
)
"""


def adapted(block: str) -> str:
    for adaptation in ADAPTED:
        block = re.sub(adaptation.pattern, adaptation.instead, block)
    return block


@pytest.fixture
def oracle_mode(database: Database) -> Iterator[Tracked]:
    if database.dialect.name != "mariadb":
        pytest.skip("sql_mode=ORACLE is MariaDB's alone")
    with tracked(database) as made:
        yield made


def install(tracking: Tracked, choice: Choice) -> None:
    blocks = dict(_Writer(subject("oracle", choice)).blocks())
    tracking.run(
        "set sql_mode = 'ORACLE,NO_BACKSLASH_ESCAPES'",
        NOTE,
        USR,
        *(
            f'create trigger t_{event} after {event} on "USR" for each row\nbegin\n{adapted(block)}end'
            for event, block in blocks.items()
        ),
    )


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
                Logged(1, KEY, "BORN", None, "2025-01-02 03:04:05"),
                Logged(1, KEY, "PHOTO", None, "qqo="),
                Logged(1, KEY, "AMOUNT", None, "1.50"),
            ],
            [Logged(2, KEY, "PHOTO", "qqo=", "u7s="), Logged(2, KEY, "BIO", None, "x")],
        ),
        (
            Choice(insert=1, update=3, columns=("BIO",)),
            [Logged(1, KEY, "BIO")],
            [Logged(3, KEY, "BIO", None, "x")],
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
