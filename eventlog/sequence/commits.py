"""The commits of captures and queues, whose transactions come whole and in the order of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused

# the fact that contains the position of a change's commit, by the format of the stream
COMMITS: Final = {"gbase": "commit", "linter": "commit_syslog_addr"}


def commit_of(change: Change, fact: str) -> int:
    """Return the position of the commit of a change; 0 if its stream does not contain it."""
    found = change.fact(fact)
    return found if type(found) is int else 0


def number_of(since: str) -> int:
    """Return the number of the commit after which reading starts."""
    if since and not (since.isascii() and since.isdigit()):
        raise Misuse(f"--since {since[:40]}: it is the number of a commit here")
    return int(since or -1)


def after_commit(changes: Iterable[Change | Refused], fact: str, since: str) -> Iterator[Change | Refused]:
    """Yield the changes that were committed after a commit, and what was refused."""
    least = number_of(since)
    return (item for item in changes if isinstance(item, Refused) or commit_of(item, fact) > least)
