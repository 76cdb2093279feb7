"""Where changes become rows: what a kind of target must do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from eventlog.core.change import Change
from eventlog.targets.tables.tally import Tally


class Group(NamedTuple):
    """A group of whole transactions of the source that become one of the target, and the state after them."""

    changes: Sequence[Change]
    state: str | None
    marks: Sequence[str] = ()  # noted one by one, if the source has no states
    begins: bool = False  # it is the first of one look at the source


class TableStore(Protocol):
    """A database or a folder of tables, which remembers what of a source was applied to it."""

    @property
    def state(self) -> str | None: ...  # after what was applied last

    @property
    def until(self) -> str | None: ...  # after the group that may be half done, and is done again

    def settle(self) -> None: ...  # that group is whole, as the source knows

    def marked(self, marks: Sequence[str]) -> set[str]: ...  # those that were applied

    def apply(self, group: Group) -> Tally: ...  # all of it, or nothing

    def close(self) -> None: ...
