"""The table of rounds: what each round is to do, and then which versions of tables belong together.

A round is begun by one commit here, with the position of the source before and after it, the number of its
changes and their digest. Each table has its own commit, with the round's number. One more commit here ends
the round, with the version of each table. So a restart sees what is missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.change import ABSENT, Change, Undecoded
from eventlog.core.errors import EventlogError
from eventlog.transfer.targets.lake.lake_place import AnotherCommit, LakeCommit, LakePlace, LakeSnapshot
from eventlog.transfer.targets.lake.lake_tables import ROUNDS
from eventlog.transfer.targets.tables.outcomes import OtherApply

ROUNDS_FORM = pa.schema(
    [
        ("source", pa.string()),
        ("round", pa.int64()),
        ("state", pa.string()),  # begun or done
        ("table_name", pa.string()),  # a row for each table; null if the round has none
        ("version", pa.int64()),  # of the table, of a round that is done
        ("starts_at", pa.string()),  # the source's position, in the first row of a round that is begun
        ("ends_at", pa.string()),
        ("changes", pa.int64()),
        ("digest", pa.string()),
        ("written_at", pa.timestamp("us", "UTC")),
        ("entry", pa.int64()),  # the order of a source's entries
    ]
)
_POSITIONS = ("starts_at", "ends_at")  # which may be long
_FACTS = [name for name in ROUNDS_FORM.names if name not in _POSITIONS]
MIN_ROUNDS = 1_000  # rounds of a source that the table has at least
_REWRITTEN = 100  # entries after which the rows of older rounds are taken out
_TIDIED = 20  # entries after which former versions of the table are let go of
_TRIES = 5


class NoEnd(EventlogError):
    """round {0} of the source {1!r} was begun with {2} changes, which the source does not give again, and \
{3} has the round. Undo what changed the source (its retention, a clock, a tables file), or restore these \
tables to their versions of round {4}, and delete what eventlog_rounds has of the source"""


class Round(NamedTuple):
    """A round of changes of a source."""

    number: int
    start: str | None  # the source's position before the round, as the target keeps it
    end: str | None
    changes: int
    digest: str
    tables: tuple[str, ...]
    is_done: bool = False
    versions: Mapping[str, int] = {}


def digest_of(changes: Sequence[Change]) -> str:
    """Return a digest that is the same for the same changes in the same order."""
    return hashlib.sha256(_ENCODER.encode(changes).encode()).hexdigest()[:32]


def _odd(value: object) -> object:
    """Return in the words of JSON what it has no values for."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, Undecoded):
        return {"undecoded": value.data.hex()}
    assert value is ABSENT
    return {}


_ENCODER = json.JSONEncoder(default=_odd, separators=(",", ":"), check_circular=False)


class Rounds:
    """The rounds of one source in a lake."""

    def __init__(self, place: LakePlace, source: str, run: str) -> None:
        self.application = f"eventlog:{source}"
        self._place = place
        self._source = source
        self._run = run
        self._snapshot = self._opened()
        self._first_entry = self._entry = self._snapshot.number(self.application)
        self.last, self.versions = self._read()

    @property
    def is_time_to_look(self) -> bool:
        """Return whether tables without changes are to be looked at."""
        return (self._entry - self._first_entry) % _REWRITTEN <= 1

    def begin(self, begun: Round) -> None:
        """Note what a round is to do."""
        facts = {"changes": begun.changes, "digest": begun.digest}
        positions = {"starts_at": begun.start, "ends_at": begun.end}
        rows = [{**facts, "table_name": name} for name in begun.tables or (None,)]
        rows[0] |= positions
        self._append("begun", begun, rows)
        self.last = begun

    def end(self, begun: Round, versions: Mapping[str, int]) -> None:
        """Note that a round is done, with the versions of its tables; other tables keep theirs."""
        self.versions = {**self.versions, **versions}
        rows = [{"table_name": name, "version": version} for name, version in self.versions.items()]
        self._append("done", begun, rows or [{}])
        self.last = begun._replace(is_done=True, versions=self.versions)

    def _append(self, state: str, of: Round, rows: Iterable[Mapping[str, Any]]) -> None:
        facts = {"source": self._source, "round": of.number, "state": state}
        facts |= {"written_at": datetime.now(UTC), "entry": self._entry + 1}
        added = pa.Table.from_pylist([{**facts, **row} for row in rows], schema=ROUNDS_FORM)
        commit = LakeCommit(
            self.application, self._entry + 1, of.end or "", self._run, {"eventlog.state": state}
        )
        for _ in range(_TRIES):
            try:
                if commit.number % _REWRITTEN:
                    self._snapshot.append(added, commit)
                else:
                    rows_kept = _without_old(self._snapshot.rows(ROUNDS_FORM.names), self._source, of.number)
                    self._snapshot.replace(pa.concat_tables([rows_kept.cast(ROUNDS_FORM), added]), commit)
                if not commit.number % _TIDIED:
                    with suppress(AnotherCommit):
                        self._snapshot.forget()
                break
            except AnotherCommit:
                self._snapshot = self._opened()
                if self._snapshot.number(self.application) != self._entry:
                    if self._snapshot.run_of(self.application, commit.number) != self._run:
                        raise OtherApply(self._source) from None
                    break  # the reply about our own commit was lost
        else:
            raise AnotherCommit(ROUNDS)
        self._entry += 1

    def _opened(self) -> LakeSnapshot:
        snapshot = self._place.open(ROUNDS)
        if snapshot is None:
            self._place.create(ROUNDS, ROUNDS_FORM, {})
            snapshot = self._place.open(ROUNDS)
        assert snapshot is not None
        return snapshot

    def _read(self) -> tuple[Round | None, dict[str, int]]:
        """Return the last round, and the versions of the last one that is done."""
        rounds = read_rounds(self._snapshot.rows(_FACTS), self._source)
        if not rounds:
            return None, {}
        of_last = self._snapshot.rows(ROUNDS_FORM.names, {"round": pa.array([rounds[-1].number])})
        done = [each for each in rounds if each.is_done]
        return read_rounds(of_last, self._source)[-1], dict(done[-1].versions) if done else {}


def done_rounds(place: LakePlace, source: str) -> list[Round]:
    """Return the rounds of a source that are done, in their order; earlier ones may lack their positions."""
    snapshot = place.open(ROUNDS)
    rounds = [] if snapshot is None else read_rounds(snapshot.rows(ROUNDS_FORM.names), source)
    return [each for each in rounds if each.is_done]


def read_rounds(rows: pa.Table, source: str) -> list[Round]:
    """Return the rounds of a source, in their order; without positions if the rows have none."""
    of_source = rows.filter(pc.equal(rows["source"], source)).sort_by("entry")
    rounds: dict[int, Round] = {}
    last_entry = 0
    for row in of_source.to_pylist():
        number, table = int(row["round"]), row["table_name"]
        names = () if table is None else (table,)
        if row["state"] == "begun":
            if row["entry"] != last_entry or number not in rounds:
                rounds[number] = Round(number, None, None, int(row["changes"]), row["digest"], ())
            begun = rounds[number]
            rounds[number] = begun._replace(
                start=row.get("starts_at") or begun.start,
                end=row.get("ends_at") or begun.end,
                tables=(*begun.tables, *names),
            )
        elif number in rounds:
            versions = {**rounds[number].versions, **{name: int(row["version"]) for name in names}}
            rounds[number] = rounds[number]._replace(is_done=True, versions=versions)
        last_entry = row["entry"]
    return list(rounds.values())


def _without_old(rows: pa.Table, source: str, number: int) -> pa.Table:
    """Return the rows without those of old rounds of a source, and without positions of earlier rounds."""
    is_of_source, round_numbers = pc.equal(rows["source"], source), rows["round"]
    is_earlier = pc.and_(is_of_source, pc.less(round_numbers, number))
    for name in _POSITIONS:
        positions = pc.if_else(is_earlier, None, rows[name])
        rows = rows.set_column(rows.schema.get_field_index(name), name, positions)
    is_old = pc.and_(is_of_source, pc.less_equal(round_numbers, number - MIN_ROUNDS))
    return rows.filter(pc.invert(is_old))
