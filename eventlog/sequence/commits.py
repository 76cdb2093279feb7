"""Transactions of several captures or queues by the places of their commits, each change once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.files.sorted_runs import SortedRuns

MEMORY: Final = 256 << 20


class Commits(NamedTuple):
    """The way in which the transactions of a format are merged."""

    fact: str  # that contains the position of a commit
    shared: bool = False  # whether several streams may contain parts of one transaction


COMMITS: Final = {"gbase": Commits("commit", shared=True), "linter": Commits("commit_syslog_addr")}


def commit_of(change: Change, fact: str) -> int:
    """Return the position of the commit of a change; 0 if its stream does not contain it."""
    found = change.fact(fact)
    return found if type(found) is int else 0


def number_of(since: str) -> int:
    """Return the number of the commit after which reading starts."""
    if since and not (since.isascii() and since.isdigit()):
        raise Misuse(f"--since {since[:40]}: it is the number of a commit here")
    return int(since or -1)


def by_commit(
    changes: Iterable[Change | Refused], commits: Commits, since: str
) -> Iterator[Change | Refused]:
    """Yield the changes of several streams in the order of their commits, each once; Refused as it is met."""
    least = number_of(since)
    repeated: Counter[str] = Counter()
    with SortedRuns[tuple[tuple[Any, ...], Change]](lambda item: item[0], _size, MEMORY) as sorter:
        for number, item in enumerate(changes):
            if isinstance(item, Refused):
                yield item
            elif (place := place_of(item, commits))[0] > least:
                sorter.add(((*place, number), item))
        ordered = (change for _, change in sorter.in_order())
        yield from once(ordered, repeated) if commits.shared else ordered
        yield from repeats_left_out(repeated)


def place_of(change: Change, commits: Commits) -> tuple[int, str, int]:
    """Return the position of a change: its commit and, if several streams share it, its sequence there."""
    commit = commit_of(change, commits.fact)
    return (commit, change.transaction or "", sequence_of(change)) if commits.shared else (commit, "", 0)


def sequence_of(change: Change) -> int:
    """Return the sequence of a change in its transaction; 0 where there is none."""
    position = change.position or ""
    return int(position) if position.isascii() and position.isdigit() else 0


def once(changes: Iterable[Change], repeated: Counter[str]) -> Iterator[Change]:
    """Yield changes in the order of their positions, and leave out repeated ones."""
    before: Change | None = None
    said: set[bytes] = set()  # by the changes of this sequence, where there are several
    for change in changes:
        if before is None or not _share_a_sequence(before, change):
            said.clear()
        else:
            said.add(_what(before))
            if (again := _what(change)) in said:
                repeated[f"{change.schema}.{change.table}" if change.schema else change.table] += 1
                continue
            said.add(again)
        before = change
        yield change


def _share_a_sequence(one: Change, other: Change) -> bool:
    place = one.transaction, one.position
    return one.position is not None and place == (other.transaction, other.position)


def _what(change: Change) -> bytes:
    """Return a digest of the content of a change, whatever stream it comes from."""
    text = repr(change._replace(extra=()))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def repeats_left_out(repeated: Counter[str]) -> Iterator[Refused]:
    """Yield one sentence for each table."""
    for table, count in repeated.items():
        yield Refused(table, f"{count} repeated changes are left out", fault=False)


def _size(item: tuple[Any, Change]) -> int:
    sides = (side for field in item[1].fields for side in field[1:] if isinstance(side, str | bytes))
    return 600 + sum(100 + len(side) for side in sides)
