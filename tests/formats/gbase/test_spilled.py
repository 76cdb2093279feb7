"""Transactions that are larger than memory may be: they wait on disk, and come out as they would have."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.change import Change
from eventlog.core.tables import Tables
from eventlog.files.stores import SpoolFile
from eventlog.formats.gbase.changes import StreamReader
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.records import Discard, Number, RbTx, Truncate
from eventlog.transactions import open_transactions
from eventlog.transactions.open_transactions import TooMuchOpen, TooMuchStored
from tests.formats.gbase.helpers import T1, StreamBuilder, changes_of, refusals_of
from tests.kit.commands import Shell

pytestmark = pytest.mark.quick

KINDS = (Number.INSERT, Number.DELETE, Number.UPDBEF, Number.UPDAFT)
T2 = "k integer, b boolean, d decimal(8,2)"


def random_stream(seed: int) -> bytes:
    """Return interleaved transactions with everything that a transaction can hold."""
    draw = random.Random(seed)
    built = StreamBuilder().table(7, T1).table(8, T2)
    open_ones: list[int] = []
    for sequence in range(1, 400):
        chance = draw.random()
        if not open_ones or (chance < 0.05 and len(open_ones) < 6):
            open_ones.append(sequence)
            built.begin(sequence, sequence)
        elif chance < 0.08:
            built.commit(sequence, open_ones.pop(draw.randrange(len(open_ones))))
        elif chance < 0.09:
            built.say(RbTx(sequence, open_ones.pop(draw.randrange(len(open_ones)))))
        elif chance < 0.13:
            built.say(Discard(max(1, sequence - draw.randrange(1, 40)), draw.choice(open_ones)))
        elif chance < 0.15:
            built.say(Truncate(sequence, draw.choice(open_ones), draw.choice((7, 8))))
        else:
            table, values = draw.choice(((7, (sequence, "a" * 90)), (8, (sequence, None, "-0.50"))))
            built.row(draw.choice(KINDS), sequence, draw.choice(open_ones), table, values)
    for transaction in open_ones:
        built.commit(500 + transaction, transaction)
    return built.data


def answers(data: bytes, limit: int, spool: SpoolFile | None = None, stored: int = 1 << 20) -> list[Any]:
    place = None if spool is None else lambda: spool
    reader = StreamReader(Tables(), GbaseSettings(max_open=limit, open_bytes=stored, spool=place))
    return [answer for at in range(0, len(data), 999) for answer in reader.feed(data[at : at + 999])]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("block", [700, 2000, open_transactions.BLOCK])
def test_what_waits_on_disk_comes_out_as_from_memory(
    seed: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_transactions, "BLOCK", block)
    data = random_stream(seed)
    spool = SpoolFile()
    kept = answers(data, 1 << 30)
    assert answers(data, 15_000, spool) == kept
    assert spool._disk is not None
    assert spool._disk.execute("select count(*) from blocks").fetchone() == (0,)
    assert len(kept) > 20


def test_a_discard_voids_what_is_on_disk_from_its_sequence_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_transactions, "BLOCK", 500)
    built = StreamBuilder().table(7, T1).begin(1, 1)
    for sequence in range(2, 60):
        built.row(Number.INSERT, sequence, 1, 7, (sequence, "a" * 200))
    built.say(Discard(30, 1)).row(Number.INSERT, 60, 1, 7, (60, "b")).commit(61, 1)
    changes = changes_of(answers(built.data, 3_000, SpoolFile()))
    assert [change.after["c1"] for change in changes] == [*range(2, 30), 60]


def test_a_transaction_over_the_limit_comes_out_whole_and_the_others_do() -> None:
    built = StreamBuilder().table(7, T1).begin(1, 1)
    for sequence in range(2, 50):
        built.row(Number.INSERT, sequence, 1, 7, (sequence, "a" * 200))
    built.begin(50, 2).row(Number.INSERT, 51, 2, 7, (51, "b")).commit(52, 2).commit(53, 1)
    found = answers(built.data, 10_000, SpoolFile())
    assert [change.after["c1"] for change in changes_of(found)] == [51, *range(2, 50)]
    assert not refusals_of(found)


def test_without_room_the_reading_ends_and_nothing_is_dropped_in_silence() -> None:
    built = StreamBuilder().table(7, T1).begin(1, 1)
    for sequence in range(2, 50):
        built.row(Number.INSERT, sequence, 1, 7, (sequence, "a" * 200))
    with pytest.raises(TooMuchOpen, match=r"over 10000 bytes.*max-open"):
        answers(built.data, 10_000)
    with pytest.raises(TooMuchStored, match="open-bytes"):
        answers(built.data, 10_000, SpoolFile(), 1000)


def test_a_flood_of_beginnings_ends_too() -> None:
    built = StreamBuilder()
    for transaction in range(100):
        built.begin(transaction, transaction)
    with pytest.raises(TooMuchOpen):
        answers(built.data, 10_000, SpoolFile())


def test_convert_spills(tmp_path: Path) -> None:
    built = StreamBuilder().table(7, T1).begin(1, 1)
    for sequence in range(2, 300):
        built.row(Number.INSERT, sequence, 1, 7, (sequence, "a" * 200))
    (folder := tmp_path / "here").mkdir()
    (folder / "capture").write_bytes(built.commit(999, 1).data)
    shell = Shell(folder)
    small = ("convert", "--from", "gbase", "--to", "changes", "--max-open", "20000", "capture")
    done = shell.run(*small)
    assert (done.code, done.stdout.count("\n")) == (0, 298)
    full = shell.run(*small, "--open-bytes", "100")
    assert full.code == 1
    assert "open-bytes" in full.stderr
    shell.close()


def test_a_change_of_a_spilled_row_is_a_change() -> None:
    built = StreamBuilder().table(8, T2).begin(1, 1).row(Number.INSERT, 2, 1, 8, (1, True, "1.50"))
    built.row(Number.INSERT, 3, 1, 8, (2, None, None))
    found = answers(built.commit(4, 1).data, 1000, SpoolFile())
    assert [change.after for change in found if isinstance(change, Change)] == [
        {"k": 1, "b": True, "d": "1.50"},
        {"k": 2, "b": None, "d": None},
    ]


def test_a_flood_of_discards_ends_too() -> None:
    built = StreamBuilder().begin(1, 1)
    for sequence in range(2, 100):
        built.say(Discard(sequence, 1))
    with pytest.raises(TooMuchOpen):
        answers(built.data, 10_000, SpoolFile())
