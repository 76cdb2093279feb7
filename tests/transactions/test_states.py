"""A run goes on where the last one delivered: nothing is lost, and in a folder nothing is there twice."""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import mssql

from eventlog.core import tablesfile
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.formats import Shape
from eventlog.files.limits import LIMITS
from eventlog.files.outputs import Damaged
from eventlog.formats.qlik import table_progress
from eventlog.formats.qlik.table_progress import Changed, VisibleLate
from eventlog.transfer import job_output
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from eventlog.transfer.sources.sequenced_feed import FileTables
from eventlog.transfer.sources.sql_cells import UtcNow
from tests.kit.databases import Database
from tests.kit.support import CLOCK
from tests.kit.tiers import drawn
from tests.transactions.killed import run_and_kill
from tests.transactions.reading import delivered

pytestmark = pytest.mark.quick

START = 1_699_999_980  # a minute, in seconds
LONG = float(os.environ.get("EVENTLOG_PROOF_SECONDS", "0"))  # makes the property longer
USR = tablesfile.read('[tables.usr]\nkey = ["id"]\ncolumns = { id = "integer", v = "varchar(9)" }\n')
HEADING = "header__change_seq,header__change_oper,header__change_mask,header__transaction_id,id,v"


class Line:
    """A row of a change table."""

    def __init__(self, number: int, second: int, transaction: str, table: str, letter: str = "I") -> None:
        self.second = second
        self.table = table
        at = time.strftime("%Y%m%d%H%M%S", time.gmtime(START + second))
        self.seq = f"{at}00{number:019}"
        mask, value = {"I": ("30", "a"), "U": ("20", "a"), "B": ("", "b")}[letter]
        self.text = f"{self.seq},{letter},{mask},{transaction},{number},{value}"


def written(folder: Path, name: str, lines: list[Line], second: int) -> str:
    """Return a file of a change table as it was at a time."""
    path = folder / name / f"{lines[0].table if lines else 'usr'}__ct.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([HEADING, *(line.text for line in lines)]) + "\n")
    os.utime(path, (START + second, START + second))
    return str(path)


def job(folder: Path, inputs: list[str], **options: Any) -> Job:
    return Job(
        "qlik-table", "changes", tuple(inputs), f"{folder / 'out'}/", options=options, state=folder / "state"
    )


def read(folder: Path, inputs: list[str], **options: Any) -> list[Refused]:
    refused: list[Refused] = []
    convert(job(folder, inputs, **options), Report(refused.append), CLOCK)
    return refused


def changes(folder: Path) -> list[dict[str, Any]]:
    """Return the changes in the parts."""
    texts = [path.read_text() for path in sorted((folder / "out").glob("part-*"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def out(folder: Path) -> list[str]:
    """Return the positions in the parts."""
    return [change["position"] for change in changes(folder)]


def task(seconds: list[int]) -> list[Line]:
    """Return changes of a task at these seconds, one transaction each second, over two tables."""
    return [
        Line(n, s, f"{s % 3:X}", ("usr", "grp")[n % 2], "IIU"[n % 3])
        for n, s in enumerate(sorted(seconds), 1)
    ]


def images(lines: list[Line]) -> list[Line]:
    """Return the B rows of updates."""
    updates = [(n, line) for n, line in enumerate(lines, 1) if ",U," in line.text]
    return [Line(n, line.second, f"{line.second % 3:X}", line.table, "B") for n, line in updates]


def test_rows_of_a_full_load_between_changes_are_delivered_once(tmp_path: Path) -> None:
    lines = [Line(n, 5 * n, f"{n:X}", "usr").text for n in (1, 2, 3)]
    load = tmp_path / "usr__ct.csv"
    load.write_text("\n".join([HEADING, lines[0], ",I,30,,7,a", lines[1], ",I,30,,8,a", lines[2], ""]))
    for _ in range(2):
        assert read(tmp_path, [str(load)]) == []
        assert len(changes(tmp_path)) == 5


def test_half_a_record_that_a_kill_left_in_a_growing_file_stands_alone(tmp_path: Path) -> None:
    """Begin a line of its own after it, so that later records stay readable."""
    inputs = [written(tmp_path, "in", task([1, 2]), 300)]
    grown = tmp_path / "grown.jsonl"
    grown.write_text('{"whole": 1}\n{"op":"ins')
    convert(replace(job(tmp_path, inputs), output=str(grown)), Report(print), CLOCK)
    first, half, *records = grown.read_text().splitlines()
    assert (first, half) == ('{"whole": 1}', '{"op":"ins')
    assert [json.loads(record)["op"] for record in records] == ["insert", "update"]


@settings(max_examples=drawn(12) + int(LONG))
@given(
    seconds=st.lists(st.integers(0, 200), min_size=1, max_size=30),
    chance=st.randoms(use_true_random=False),
    runs=st.lists(st.tuples(st.integers(0, 300), st.booleans(), st.integers(0, 40)), max_size=6),
)
def test_any_split_over_files_runs_and_kills_gives_each_transaction_once(
    seconds: list[int], chance: random.Random, runs: list[tuple[int, bool, int]]
) -> None:
    """A run sees what was there at some second, all of it or the last minutes, in files cut anywhere."""
    lines = task(seconds)
    rows = [*lines, *images(lines)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        now = delivered = 0
        for number, (later, all_of_it, kill) in enumerate([*runs, (500, True, 1000)]):
            now = max(now, later)
            first = 0 if all_of_it else delivered // 60 * 60
            there = [row for row in rows if first <= row.second <= now]
            inputs = _cut(folder, str(number), there, now, chance)
            if inputs and run_and_kill(lambda given=inputs: _small(folder, given), kill):  # type: ignore[misc]
                delivered = max(0, now - 60)
        assert out(folder) == [line.seq for line in lines]
        joined = [change for change in changes(folder) if change["op"] == "update"]
        assert all("before" in field for change in joined for field in change["fields"])


def _small(folder: Path, inputs: list[str]) -> None:
    job_output.CHANGES = 2  # type: ignore[misc]  # in a process of its own
    read(folder, inputs)


def _cut(folder: Path, name: str, lines: list[Line], now: int, chance: random.Random) -> list[str]:
    """Return the lines in some files of each table, in any order."""
    paths: list[str] = []
    for table in ("usr", "grp"):
        rows = [line for line in lines if line.table == table]
        chance.shuffle(rows)
        while rows:
            size = chance.randint(1, len(rows))
            paths.append(written(folder, f"{name}.{len(paths)}", rows[:size], now))
            rows = rows[size:]
    chance.shuffle(paths)
    return paths


@pytest.mark.long
def test_many_transactions_of_one_time_are_read_in_linear_time(tmp_path: Path) -> None:
    """Write one state for many, because a state after each would take quadratic time."""
    lines = [Line(number, 1, f"{number:X}", "usr") for number in range(1, 20_001)]
    inputs = [written(tmp_path, "in", lines, 300)]
    for _ in range(2):
        read(tmp_path, inputs)
    assert out(tmp_path) == [line.seq for line in lines]


def test_a_state_between_transactions_of_one_time_leaves_none_out(tmp_path: Path) -> None:
    lines = [Line(number, 1, f"{number:X}", "usr") for number in range(1, 4)]
    one = job(tmp_path, [written(tmp_path, "in", lines, 300)])
    states = [state for _, state in delivered(one)]
    left = [
        [change.position for changes, _ in delivered(one, state) for change in changes] for state in states
    ]
    assert left == [[line.seq for line in lines[number:]] for number in (1, 2, 3)]


def test_what_was_delivered_is_known_for_as_long_as_it_takes_to_settle(tmp_path: Path) -> None:
    """Keep no more than that of a table: `--settle` is how late a row may become visible."""
    lines = [Line(n, n, "A", "usr") for n in (100, 339, 340, 400)]
    read(tmp_path, [written(tmp_path, "a", lines, 500)])
    position = json.loads(json.loads((tmp_path / "state").read_text())["position"])
    assert position["tables"]["usr"][2] == [f"{line.seq}I" for line in lines[2:]]
    too_late = Line(2, 2, "A", "usr")
    assert read(tmp_path, [written(tmp_path, "b", [*lines, too_late], 500)]) == []
    assert out(tmp_path) == [line.seq for line in lines]


def test_a_task_that_was_stopped_goes_on_at_any_time(tmp_path: Path) -> None:
    """Deliver what follows: the times are those of the source's commits, and a task may be hours late."""
    lines = [Line(n, n, f"{n:X}", ("usr", "grp")[n % 2]) for n in range(1, 7)]
    for upto, second in ((2, 500), (4, 90_000), (6, 100_000)):
        there = [[line for line in lines[:upto] if line.table == table] for table in ("usr", "grp")]
        read(tmp_path, [written(tmp_path, str(upto), part, second) for part in there])
    assert out(tmp_path) == [line.seq for line in lines]


@pytest.mark.parametrize("time", ["00000101000000", "00010101000000", "20220231235959", "99991231235959"])
def test_a_change_seq_of_no_day_of_the_calendar_is_read_on_too(tmp_path: Path, time: str) -> None:
    """Read it on from a state, because a change_seq is text: its digits alone are checked."""
    lines = [Line(n, n, f"{n:X}", ("usr", "grp")[n % 2]) for n in (1, 2)]
    for line in lines[:1]:
        line.text = line.text.replace(line.seq, f"{time}00{1:019}")
    inputs = [written(tmp_path, line.table, [line], 500) for line in lines]
    for _ in range(2):
        read(tmp_path, inputs)
    assert len(out(tmp_path)) == (1 if time[0] == "9" else 2)


def test_a_window_of_many_changes_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_progress, "MAX_CHANGES", 4)
    lines = [Line(n, n, "A", "usr") for n in range(1, 20)]
    one = job(tmp_path, [written(tmp_path, "a", lines, 60 + 60)])
    states = [state or "" for _, state in delivered(one)]
    assert max(len(json.loads(state)["tables"]["usr"][2]) for state in states) == 5
    for number, state in enumerate(states, 1):
        left = [change.position for changes, _ in delivered(one, state) for change in changes]
        assert left == [line.seq for line in lines[number:]]


def test_what_is_younger_than_the_settling_time_is_left(tmp_path: Path) -> None:
    lines = [Line(1, 0, "A", "usr"), Line(2, 50, "B", "usr")]
    said = read(tmp_path, [written(tmp_path, "a", lines, 70)])
    assert out(tmp_path) == [lines[0].seq]
    assert [r.reason for r in said] == ["1 row is younger than --settle and left to the next run"]
    read(tmp_path, [written(tmp_path, "a", lines, 70)], settle=5.0)
    assert out(tmp_path) == [line.seq for line in lines]


@pytest.mark.usefixtures("kathmandu")
def test_the_clock_of_change_tables_is_that_of_the_one_that_was_written_first(tmp_path: Path) -> None:
    names = [written(tmp_path, "a", [Line(1, 0, "A", table)], at) for table, at in (("usr", 60), ("grp", 90))]
    names.append(written(tmp_path, "b", [Line(1, 0, "A", "usr")], 80))  # more of the same table
    tables = FileTables(names, Shape.ROWS, None, LIMITS, lambda _: None)
    assert tables.clock() == time.strftime("%Y%m%d%H%M%S00", time.gmtime(START + 80))


def test_what_is_younger_than_the_oldest_file_is_left(tmp_path: Path) -> None:
    """Wait for the rows of another table that the same transaction has."""
    lines = [Line(1, 0, "A", "usr"), Line(2, 90, "B", "usr"), Line(3, 90, "B", "grp")]
    early = [written(tmp_path, "a", lines[:2], 500), written(tmp_path, "a", [Line(0, 0, "A", "grp")], 60)]
    read(tmp_path, early)
    assert [position[-2:] for position in out(tmp_path)] == ["00", "01"]
    late = [
        written(tmp_path, "b", lines[:2], 500),
        written(tmp_path, "b", [Line(0, 0, "A", "grp"), lines[2]], 500),
    ]
    assert read(tmp_path, late) == []
    assert [position[-2:] for position in out(tmp_path)] == ["00", "01", "02", "03"]


@pytest.mark.parametrize("target", ["qlik-message", "qlik-table"])
def test_a_run_that_had_nothing_to_write_yet_is_gone_on_from(tmp_path: Path, target: str) -> None:
    lines = task([1, 60])[:1]
    for second in (20, 70):
        one = job(tmp_path, [written(tmp_path, str(second), lines, second)])
        convert(replace(one, target_format=target, tables=USR), Report(print), CLOCK)
    (part,) = (path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert lines[0].seq[:16] in part.read_text()


def test_a_refused_row_that_cannot_be_kept_is_read_again(tmp_path: Path) -> None:
    lines = [Line(1, 0, "1", "usr"), Line(2, 1, "2", "usr")]
    lines[1].text += ",a cell too many"
    inputs = [written(tmp_path, "in", lines, 2)]
    full = open("/dev/full", "wb")  # noqa: SIM115 - its end fails, too
    with pytest.raises(OSError, match="No space left on device"):
        convert(job(tmp_path, inputs), Report(print, full), CLOCK)
    with suppress(OSError):
        full.close()
    assert json.loads((tmp_path / "state").read_text())["position"] is None
    assert read(tmp_path, inputs)[0].reason == "has 7 cells, the header 6"


def test_a_row_that_became_visible_late_is_an_error_that_names_its_table(tmp_path: Path) -> None:
    lines = [Line(n, n, "A", "usr") for n in (1, 3, 20)]
    read(tmp_path, [written(tmp_path, "a", lines, 100)])
    late = Line(2, 2, "A", "usr")
    for name, there in (("b", [*lines, late]), ("c", [late])):
        with pytest.raises(VisibleLate, match=f"usr: change_seq {late.seq} .*, {lines[-1].seq} was"):
            read(tmp_path, [written(tmp_path, name, there, 100)])
    assert out(tmp_path) == [line.seq for line in lines]


def test_a_u_row_that_becomes_visible_after_its_b_row_is_an_error(tmp_path: Path) -> None:
    rows = [Line(1, 1, "A", "usr", letter) for letter in "BU"]
    read(tmp_path, [written(tmp_path, "a", rows[:1], 100)])
    with pytest.raises(VisibleLate, match=rows[0].seq):
        read(tmp_path, [written(tmp_path, "b", rows, 100)])


def test_the_part_that_the_state_names_must_be_what_it_was(tmp_path: Path) -> None:
    inputs = [written(tmp_path, "a", [Line(1, 1, "A", "usr")], 500)]
    read(tmp_path, inputs)
    (part,) = (tmp_path / "out").glob("part-*")
    part.write_text(part.read_text().replace("insert", "delete"))
    with pytest.raises(Damaged, match=r"part-00000001\.jsonl"):
        read(tmp_path, inputs)


def test_a_folder_of_parts_without_its_state_is_left_alone(tmp_path: Path) -> None:
    inputs = [written(tmp_path, "a", [Line(1, 1, "A", "usr")], 500)]
    read(tmp_path, inputs)
    (tmp_path / "state").unlink()
    with pytest.raises(Misuse, match="no state records it"):
        read(tmp_path, inputs)
    assert len(out(tmp_path)) == 1


def test_files_of_others_in_a_folder_that_becomes_one_of_parts_are_left_alone(tmp_path: Path) -> None:
    """Remove only what a run of the same state left."""
    of_another = tmp_path / "out" / ".part-00000009.jsonl.part"
    of_another.parent.mkdir()
    of_another.touch()
    inputs = [written(tmp_path, "a", [Line(1, 1, "A", "usr")], 500)]
    read(tmp_path, inputs)
    assert of_another.exists()
    read(tmp_path, inputs)
    assert not of_another.exists()


@pytest.mark.parametrize("text", ["", "[]", '{"format": "gbase"}', '{"format": "qlik-table", "position": 7}'])
def test_a_state_that_is_none_is_misuse(tmp_path: Path, text: str) -> None:
    (tmp_path / "state").write_text(text)
    with pytest.raises(Misuse, match="is not a state file"):
        read(tmp_path, [written(tmp_path, "a", [Line(1, 1, "A", "usr")], 500)])


def test_messages_go_on_in_the_next_part_as_if_they_were_one_run(tmp_path: Path) -> None:
    """A structure is published once, and a state that lacks what was written is none."""
    lines = [line for line in task([0, 60, 600, 660, 6000]) if line.table == "usr"]
    for upto in (1, len(lines)):
        source = written(tmp_path, "in", lines[:upto], 10_000 * upto)
        made = replace(job(tmp_path, [source]), target_format="qlik-message")
        convert(made, Report(lambda reported: None), CLOCK)
    texts = [path.read_text() for path in sorted((tmp_path / "out").glob("part-*"))]
    messages = [json.loads(line) for text in texts for line in text.splitlines()]
    assert [message["type"] for message in messages] == ["MD", *["DT"] * len(lines)]
    assert len(texts) == 2


@pytest.mark.parametrize("position", ["", "{}", "[]", '{"done": 7}'])
def test_a_position_that_is_none_is_an_error(tmp_path: Path, position: str) -> None:
    kept = {"version": 1, "format": "qlik-table", "position": position, "part": None, "written": None}
    (tmp_path / "state").write_text(json.dumps(kept))
    with pytest.raises(EventlogError, match="is not the state of change tables"):
        read(tmp_path, [written(tmp_path, "a", [Line(1, 1, "A", "usr")], 500)])


def test_a_file_that_is_not_there_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="no such file"):
        read(tmp_path, [str(tmp_path / "usr__ct.csv")])


def test_states_stand_in_the_sequence(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="--order as-is is for files that are read once"):
        read(tmp_path, [written(tmp_path, "a", [Line(1, 1, "A", "usr")], 500)], order="as-is")


@pytest.mark.parametrize("limit", ["since", "until"])
def test_a_limit_that_is_no_sequence_is_misuse(tmp_path: Path, limit: str) -> None:
    with pytest.raises(Misuse, match=f"--{limit}: change_seq '5' is not 35 digits"):
        read(tmp_path, [written(tmp_path, "a", [Line(1, 1, "A", "usr")], 500)], **{limit: "5"})


def test_a_full_load_grows_and_does_not_shrink(tmp_path: Path) -> None:
    """Refuse fewer rows than were delivered, because the table was loaded anew."""
    load = tmp_path / "usr__ct.csv"
    for rows in (2, 3, 7, 7):
        load.write_text("\n".join([HEADING, *(f",I,30,,{n},a" for n in range(rows)), ""]))
        read(tmp_path, [str(load)])
    assert len(out(tmp_path)) == 7
    load.write_text(f"{HEADING}\n,I,30,,8,b\n,I,30,,9,b\n")
    with pytest.raises(Changed, match="has 2 rows without a change_seq, where 7 were delivered"):
        read(tmp_path, [str(load)])


def test_rows_of_a_full_load_come_once(tmp_path: Path) -> None:
    load = tmp_path / "usr__ct.csv"
    load.write_text(f"{HEADING}\n,I,30,,1,a\n,I,30,,2,b\n")
    for _ in range(2):
        read(tmp_path, [str(load)])
    assert out(tmp_path) == [None, None]
    load.write_text(f"{HEADING}\n,I,30,,1,a\n,I,30,,7,b\n,I,30,,8,b\n")
    with pytest.raises(Changed, match="its first 2 rows without a change_seq were others"):
        read(tmp_path, [str(load)])


# --- change tables of a database

TABLE = """create table usr__ct (header__change_seq varchar(35), header__change_oper varchar(1),
 header__change_mask varchar(8), header__transaction_id varchar(32), id integer, v varchar(8))"""


def insert(engine: sa.Engine, *lines: Line) -> None:
    with engine.begin() as connection:
        for line in lines:
            seq, letter, mask, transaction, id_, v = line.text.split(",")
            row = f"'{seq}', '{letter}', '{mask}', '{transaction}', {id_}, '{v}'"
            connection.execute(sa.text(f"insert into usr__ct values ({row})"))


def test_change_tables_of_a_database_are_followed(tmp_path: Path, database: Database) -> None:
    """Deliver added rows after earlier ones; rows that are too young wait."""
    engine = database.engine()
    with engine.begin() as connection:
        connection.execute(sa.text(TABLE))
    lines = [Line(n, 60 * n, "A", "usr") for n in range(1, 9)]
    young = Line(99, int(time.time()) - START + 3600, "B", "usr")
    insert(engine, *lines[:3], young)
    later = [lines[3:6], lines[6:]]

    def wait(seconds: float) -> bool:
        assert seconds == 0.5
        if later:
            insert(engine, *later.pop(0))
            return True
        return False

    url = database.address
    wanted = replace(job(tmp_path, ["usr"], follow_interval=0.5), url=url)
    convert(wanted, Report(lambda refused: None), CLOCK, run_length=RunLength(True, wait))
    assert out(tmp_path) == [line.seq for line in lines]
    assert len(list((tmp_path / "out").glob("part-*"))) == 3
    with engine.begin() as connection:
        connection.execute(sa.text("insert into usr__ct values (null, 'I', '30', null, 70, 'a')"))
    convert(wanted, Report(lambda refused: None), CLOCK)
    assert out(tmp_path) == [*(line.seq for line in lines), None], "a row of a full load"
    insert(engine, Line(50, 61 * 8, "C", "usr"), Line(51, 60 * 8 - 1, "D", "usr"))
    with pytest.raises(VisibleLate, match=f"usr: change_seq {Line(51, 60 * 8 - 1, 'D', 'usr').seq}"):
        convert(wanted, Report(lambda refused: None), CLOCK)
    convert(
        replace(wanted, options={**wanted.options, "accept_late": True}), Report(lambda refused: None), CLOCK
    )
    assert [position for position in out(tmp_path)[-2:] if position] == [
        Line(51, 60 * 8 - 1, "D", "usr").seq,
        Line(50, 61 * 8, "C", "usr").seq,
    ]
    engine.dispose()


def test_change_tables_of_a_database_that_holds_no_log_are_read_on_too(tmp_path: Path) -> None:
    """Use SQLite for all databases that SQLAlchemy knows; SQL Server is checked by text."""
    url = f"sqlite:///{tmp_path / 'db'}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(TABLE))
    lines = [Line(n, 60 * n, "A", "usr") for n in range(1, 4)]
    young = Line(99, int(time.time()) - START, "B", "usr")
    insert(engine, *lines[:2], young)
    wanted = replace(job(tmp_path, ["usr"]), url=url)
    convert(wanted, Report(lambda refused: None), CLOCK)
    insert(engine, lines[2])
    convert(wanted, Report(lambda refused: None), CLOCK)
    assert out(tmp_path) == [line.seq for line in lines]
    engine.dispose()
    sql_server = mssql.dialect()  # type: ignore[no-untyped-call]
    assert str(sa.select(UtcNow()).compile(dialect=sql_server)) == "SELECT sysutcdatetime() AS anon_1"
