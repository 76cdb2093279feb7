"""eventlog explain for change tables and messages: the content of each record, and its group."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from eventlog.cli.setting_hints import with_hints
from eventlog.cli.terminal import Shade, print_sentence, show
from eventlog.core import tablekey
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Placed

_COLOURS = {"sent": "green", "repeated": "bright_black", "refused": "red"}


class WantedChanges(NamedTuple):
    """The changes that are explained."""

    table: str | None
    key: str | None

    def speaks_of(self, change: Change) -> bool:
        """Return whether a change is one of these."""
        names = {change.table.lower(), f"{change.schema}.{change.table}".lower()}
        if self.table is not None and self.table.lower() not in names:
            return False
        if self.key is None:
            return True
        wanted = {column.lower(): value for column, value in tablekey.read(self.key)}
        return wanted == {column.lower(): str(value) for column, value in change.key}

    @property
    def everything(self) -> bool:
        return self.table is None and self.key is None


def tell(items: Iterable[Placed | Refused], wanted: WantedChanges, as_json: bool) -> int:
    """Show the outcome of every record in the order of the changes; how many are refused."""
    count = 0
    for item in items:
        if isinstance(item, Placed):
            if wanted.speaks_of(item.change):
                _sent(item, as_json)
            continue
        count += item.fault
        if not item.fault and not item.grouped:
            print_sentence(f"{item.where}: {item.reason}")
        elif wanted.everything:
            _left_out(item, as_json)
    return count


def _sent(placed: Placed, as_json: bool) -> None:
    change, beside = placed.change, placed.beside
    if as_json:
        known = {"op": str(change.op), "table": change.table, "position": change.position}
        show(json.dumps({"where": placed.where, "outcome": "sent", **known, "before": beside or None}))
        return
    key = tablekey.write((column, str(value)) for column, value in change.key) if change.key else ""
    with_image = f", with its before row at {beside}" if beside else ""
    description = f": {change.op} {change.table} {key} at {change.position or 'no position'}{with_image}"
    show(f"{placed.where:<30}  ", Shade("sent", _COLOURS["sent"]), description)


def _left_out(refused: Refused, as_json: bool) -> None:
    outcome = "refused" if refused.fault else "repeated"
    if as_json:
        show(json.dumps({"where": refused.where, "outcome": outcome, "reason": refused.reason}))
    else:
        show(f"{refused.where:<30}  ", Shade(outcome, _COLOURS[outcome]), f": {with_hints(refused.reason)}")
