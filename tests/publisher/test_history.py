"""What operators did is on record, truly: history lists it, and what did nothing leaves no line."""

from __future__ import annotations

import getpass
import json
import shlex
from collections.abc import Sequence

import pytest

from eventlog.fold import Rules
from eventlog.operate.notice_sentences import SENTENCES
from eventlog.operate.redriving import PAGE
from eventlog.operate.upkeep import failures
from eventlog.sql.capture.resync import Resync, resync
from eventlog.sql.log.log_admin import FailureFilter
from eventlog.sql.log.log_record import Notice, NoticeKind
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.logs import Receiver, fail, key
from tests.world.world import World, call

pytestmark = pytest.mark.quick


def noticed(world: World) -> list[Notice]:
    """Return what is on record as JSON has it, the latest first."""
    lines = call(world, "history", "--json").stdout.splitlines()
    facts = [json.loads(line) for line in lines]
    notices = [Notice(**{name: each[name] for name in each if name != "tries"}) for each in facts]
    assert all(notice.username and notice.at for notice in notices)
    return notices


def done(world: World) -> list[tuple[str, str]]:
    """Return the kind and the sentence of each line, the latest first, without the tries of rows."""
    lines = [line for line in call(world, "history").stdout.splitlines() if not line.startswith(" ")]
    facts = (line[21:].split("  ", 1)[1].partition("  ") for line in lines)
    return [(kind, sentence.strip()) for kind, _, sentence in facts]


def test_a_skip_of_nothing_says_why_and_leaves_no_line(world: World) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))
    world.cycle(Receiver())
    world.write(key(3, event_type=4))
    result = call(world, "skip", "999", "--because", "a test")
    assert (result.exit_code, result.stderr) == (
        1,
        "eventlog: 0 rows are skipped\neventlog: row 999 stays: not in the log\n",
    )
    assert done(world) == []
    assert call(world, "history").stderr == "eventlog: no operator has done anything to this log\n"
    result = call(world, "skip", "1", "2", "3", "999", "--because", "a test")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "eventlog: 1 row is skipped",
        "eventlog: rows 1, 2 stay: its status is S already, so there is nothing to give up",
        "eventlog: row 999 stays: not in the log",
    ]
    assert call(world, "skip", "3", "--because", "again").exit_code == 1
    assert done(world) == [("skip", "usr idu=3: row 3: a test")]


def test_everything_that_operators_did_is_listed(world: World) -> None:
    world.user(1)
    world.write(key(1, event_type=4), key(2, event_type=4))
    world.cycle(Receiver(fail))
    call(world, "redrive", "2")
    call(world, "skip", "1", "--because", "a test")
    call(world, "pause", "--because", "the engine moves")
    call(world, "resume")
    assert "was not paused" in call(world, "resume").stderr
    table = world.reader(("usr",), Rules(), XdsSettings()).tables.get("usr")
    assert table is not None
    list(resync(world.store, Resync(table, where="t.idu > 0"), lambda rows: None))
    call(world, "purge", "--older-than", "2099-01-01 00:00:00", "--letters", "W")
    assert done(world) == [
        ("purge", "1 row of W from before 2099-01-01 00:00:00"),
        ("resync", f"{table}: 1 row where t.idu > 0 logged, as event type 5"),
        ("resume", ""),
        ("pause", "the engine moves"),
        ("skip", "usr idu=1: row 1: a test"),
        ("redrive", "usr idu=2: row 2"),
    ]
    notices = noticed(world)
    assert [*notices[0]][:9] == ["purge", None, None, 1, 1, 1, [], None, "W"]
    assert [*notices[-1]][:9] == ["redrive", "usr", "idu=2", 2, 2, 1, [2], "eventlog:2", "E"]
    (line,) = call(world, "history", "--limit", "1").stdout.splitlines()
    assert line.endswith("purge     1 row of W from before 2099-01-01 00:00:00")


def test_every_kind_has_its_sentence() -> None:
    assert SENTENCES.keys() == set(NoticeKind)


def test_a_resync_that_goes_on_is_one_in_the_history(world: World) -> None:
    for number in range(5):
        world.user(number)
    table = world.reader(("usr",), Rules(), XdsSettings()).tables.get("usr")
    assert table is not None
    request = Resync(table, chunk=2)
    next(resync(world.store, request, lambda rows: None))
    list(resync(world.store, request, lambda rows: None))
    assert [sentence for _, sentence in done(world)] == [f"{table}: 5 rows logged, as event type 5"]


def test_a_resync_that_stopped_is_in_the_history_as_one_that_goes_on(world: World) -> None:
    world.user(1)
    table = world.reader(("usr",), Rules(), XdsSettings()).tables.get("usr")
    assert table is not None
    next(resync(world.store, Resync(table, where="t.idu = 1", chunk=1), lambda rows: None))
    list(resync(world.store, Resync(table), lambda rows: None))
    assert [sentence for _, sentence in done(world)] == [
        f"{table}: 1 row logged, as event type 5",
        f"{table}: rows where t.idu = 1 are being logged, as event type 5",
    ]


def test_the_oldest_line_within_a_limit_is_whole(world: World) -> None:
    world.user(1)
    table = world.reader(("usr",), Rules(), XdsSettings()).tables.get("usr")
    assert table is not None
    for _ in range(2):  # each leaves a notice when it begins, and one when it ends
        list(resync(world.store, Resync(table), lambda rows: None))
    call(world, "pause")
    lines = call(world, "history").stdout.splitlines()
    for limit in range(1, 4):
        assert call(world, "history", "--limit", str(limit)).stdout.splitlines() == lines[:limit]


def test_a_redrive_of_many_rows_is_one_line_with_its_condition(world: World) -> None:
    rows = PAGE + 100
    world.write(*(key(number, event_type=9) for number in range(rows)))
    world.cycle(Receiver())
    (reason,) = {row.why for row in failures(world.store, FailureFilter())}
    assert call(world, "redrive", "--because", reason[:9], "--by", "ada").exit_code == 0
    with world.store.admin() as admin:
        assert [notice.row_count for notice in admin.notices()] == [100, PAGE]
    condition = f"--because {shlex.quote(reason[:9])}"
    assert done(world) == [("redrive", f"usr: 1 100 rows from 1 to {rows}: {condition}")]
    (notice,) = noticed(world)
    assert (notice.who, notice.row_count, notice.first_id, notice.last_id) == ("ada", rows, 1, rows)
    assert len(notice.record_ids) == rows
    world.cycle(Receiver())
    assert call(world, "redrive", "--all").exit_code == 0  # another command is another line
    assert [sentence.rpartition(": ")[2] for _, sentence in done(world)] == ["--all", condition]
    (line,) = call(world, "history", "--limit", "1").stdout.splitlines()[:1]
    assert line.endswith(": --all")


ACTS = {
    NoticeKind.REDRIVE: ["redrive", "2"],
    NoticeKind.SKIP: ["skip", "1", "--because", "a test"],
    NoticeKind.PURGE: ["purge", "--older-than", "2099-01-01 00:00:00"],
    NoticeKind.PAUSE: ["pause"],
    NoticeKind.RESUME: ["resume"],
    NoticeKind.RESYNC: ["resync", "usr"],
}


@pytest.mark.parametrize("kind", ACTS)
def test_who_did_it_is_the_person_not_the_databases_user(
    world: World, kind: NoticeKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))
    world.cycle(Receiver(fail))

    def act(*words: str) -> Notice:
        if kind == NoticeKind.RESUME:
            call(world, "pause")
        assert call(world, *ACTS[kind], *words).exit_code == 0
        return noticed(world)[0]

    notice = act("--by", "ada")
    assert (notice.kind, notice.who) == (kind, "ada")
    assert call(world, "history", "--limit", "1").stdout[21:].startswith("ada  ")
    if kind not in (NoticeKind.REDRIVE, NoticeKind.SKIP):  # which cannot be done twice
        assert act().who == getpass.getuser()
        monkeypatch.setattr(getpass, "getuser", _no_user)
        assert str(act().who).startswith("uid ")


def _no_user() -> str:
    raise KeyError("getpwuid(): uid not found: 12345")


@pytest.mark.parametrize(
    ("words", "stays", "letters"),
    [
        (["--table", "usr"], [], "WWE"),
        (["1", "3", "--table", "usr"], ["row 3 stays: not a failed row of usr"], "WEE"),
        (["2", "4", "--table", "usr"], ["row 4 stays: not a failed row of usr"], "EWE"),
    ],
)
def test_a_table_chooses_the_failed_rows_that_are_skipped(
    world: World, words: Sequence[str], stays: Sequence[str], letters: str
) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4), key(3, event_type=9) | {"table_name": "other"})
    world.cycle(Receiver(fail))
    world.write(key(4, event_type=4))
    result = call(world, "skip", *words, "--because", "a test")
    assert result.exit_code == (1 if stays else 0)
    assert result.stderr.splitlines()[1:] == [f"eventlog: {sentence}" for sentence in stays]
    assert "".join(world.letters().values()) == letters + "N"


def test_a_skip_names_rows_or_a_table_that_has_some(world: World) -> None:
    assert "which rows" in str(call(world, "skip", "--because", "a test").exception)
    assert "no such table" in str(call(world, "skip", "--table", "nope", "--because", "a test").exception)
    result = call(world, "skip", "--table", "usr", "--because", "a test")
    assert (result.exit_code, result.stderr) == (
        0,
        "eventlog: no row of these has failed\neventlog: 0 rows are skipped\n",
    )


def test_a_resume_of_the_publisher_lets_no_table_pass(world: World) -> None:
    call(world, "pause", "--because", "a test")
    call(world, "resume")
    leader = world.elect()
    with leader, world.store.as_leader(leader.epoch) as work:
        assert work.passing_tables() == set()
