"""The input of the trials: change tables and a capture that grow, with all that a state has to hold.

There are transactions over two tables, updates with their B rows, deletes, and rows that are refused.
Some rows are too young for a round, and some transactions are open at its end.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.formats.gbase.records import Number
from eventlog.xds.format import FORMAT as XDS
from eventlog.xds.xds_settings import XdsSettings
from tests.formats.gbase.helpers import StreamBuilder

START = 1_699_999_980  # a minute, in seconds
TABLES = tablesfile.read("""\
[tables.usr]
number = 7
key = ["id"]
columns = { id = "integer", name = "varchar(20)" }
[tables.grp]
number = 8
key = ["id"]
columns = { id = "integer", name = "varchar(20)" }
""")
HEADING = "header__change_seq,header__change_oper,header__change_mask,header__transaction_id,id,name"
# the second of a change, its table, its letter, its id and name
ROWS = (
    (0, "usr", "I", "1", "a"),
    (0, "grp", "I", "1", "a"),
    (0, "usr", "I", "2", "a"),
    (1, "usr", "U", "1", "b"),
    (1, "grp", "I", "2", "a"),
    (2, "usr", "D", "2", "a"),
    (2, "usr", "X", "2", "refused"),
    (100, "usr", "U", "1", "c"),
    (100, "grp", "D", "1", "a"),
    (101, "grp", "U", "2", "b"),
    (101, "usr", "I", "2", "again"),
    (200, "usr", "Y", "3", "refused"),
    (200, "usr", "I", "3", "a"),
    (201, "usr", "U", "3", "b"),
    (201, "grp", "U", "2", "c"),
)
STAGES = (130, 190, 300)  # seconds at which the tables are read; what is younger than a minute is left then
OLD_NAMES = {"b": "a", "c": "b"}
MASKS = {"I": "30", "U": "20", "D": "30", "X": "30", "Y": "30"}


def table_rows(table: str, until: int) -> list[tuple[str, ...]]:
    """Return the rows of a change table that were there at some second; B rows follow all others."""
    rows: list[tuple[str, ...]] = []
    images: list[tuple[str, ...]] = []
    for number, (second, name, letter, key, value) in enumerate(ROWS, 1):
        if name != table or second > until:
            continue
        at = time.strftime("%Y%m%d%H%M%S", time.gmtime(START + second))
        seq, transaction = f"{at}00{number:019}", f"{second + 1:X}"
        rows.append((seq, letter, MASKS[letter], transaction, key, value))
        if letter == "U":
            images.append((seq, "B", "", transaction, key, OLD_NAMES[value]))
    return rows + images


def write_change_tables(folder: Path, stage: int) -> None:
    """Write the files of the change tables as they were in a stage."""
    for table in ("usr", "grp"):
        path = folder / f"{table}__ct.csv"
        rows = [",".join(cells) for cells in table_rows(table, STAGES[stage])]
        path.write_text("\n".join([HEADING, *rows, ""]))
        os.utime(path, (START + STAGES[stage],) * 2)


SCHEMA = "id integer, name varchar(20,0)"


def capture_stages() -> list[bytes]:
    """Return the bytes that each stage adds to a capture; they begin and end anywhere."""
    built = StreamBuilder().table(7, SCHEMA).table(8, SCHEMA)
    built.begin(1, 1).row(Number.INSERT, 2, 1, 7, (1, "a")).begin(3, 2)
    built.row(Number.INSERT, 4, 2, 8, (1, "a")).row(Number.INSERT, 5, 1, 7, (2, "a")).commit(6, 1)
    built.row(Number.INSERT, 7, 2, 8, (2, "a"))
    built.begin(8, 1).row(Number.UPDBEF, 9, 1, 7, (1, "a"))
    first = len(built.data)
    built.row(Number.UPDAFT, 10, 1, 7, (1, "b")).commit(11, 1)
    built.begin(12, 3).row(Number.DELETE, 13, 3, 7, (2, "a"))
    corrupt = len(built.data)
    built.row(Number.INSERT, 14, 3, 7, (3, "refused"))
    size = len(built.data) - corrupt
    built.commit(15, 3)
    second = len(built.data) - 9
    built.row(Number.DELETE, 16, 2, 8, (1, "a")).commit(17, 2)
    built.begin(18, 1).row(Number.INSERT, 19, 1, 8, (3, "a")).commit(20, 1)
    data = bytearray(built.data)
    data[corrupt + size - 8] = 77  # the length of a text
    return [bytes(data[:first]), bytes(data[first:second]), bytes(data[second:])]


def changes_of_stage(stage: int) -> list[Change]:
    """Return the changes that a stage adds to an input without positions."""
    return [
        [_change(Op.INSERT, 1, "a"), _change(Op.INSERT, 2, "a"), _change(Op.UPDATE, 1, "b")],
        [_change(Op.DELETE, 2, None), _change(Op.INSERT, 1, "a", "grp"), _change(Op.UPDATE, 9, "refused")],
        [_change(Op.INSERT, 2, "again"), _change(Op.UPDATE, 1, "b", "grp"), _change(Op.UPDATE, 1, "c")],
    ][stage]


def _change(op: Op, key: int, name: str | None, table: str = "usr") -> Change:
    fields = () if name is None else (Field("name", ABSENT, name),)
    if op is Op.INSERT:
        fields = (Field("id", ABSENT, key), *fields)
    return Change(op, None, table, (("id", key),), fields)


def documents_of_stage(stage: int) -> bytes:
    """Return documents of the changes of a stage, with an event-id for each."""
    events = (
        change._replace(extra=(("event_id", f"e{stage}.{number}"),))
        for number, change in enumerate(changes_of_stage(stage))
    )
    records = XDS.write(events, TABLES, XdsSettings())
    return b"".join(record for record in records if isinstance(record, bytes))


def message_changes(stage: int) -> list[Change]:
    """Return the changes of the messages that come in a stage; the second transaction is open after it."""
    numbers = (
        ((1, "A", False), (2, "B", False), (3, "A", True)),
        ((4, "C", True), (5, "B", False)),
        ((6, "B", True), (7, "D", True)),
    )
    return [_message(*facts) for facts in numbers[stage]]


COUNTERS = {1: 1, 2: 1, 3: 2, 4: 1, 5: 2, 6: 3, 7: 1}


def _message(number: int, transaction: str, is_last: bool) -> Change:
    fields = (Field("id", ABSENT, number % 3), Field("name", ABSENT, f"n{number}"))
    facts = (("event_counter", COUNTERS[number]), ("last_event", is_last))
    seq = f"2024010112000000{number:019}"
    return Change(
        Op.INSERT, None, "usr", (("id", number % 3),), fields, seq, f"{transaction * 32}", extra=facts
    )
