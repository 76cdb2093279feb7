"""The checks of a batch's content as JSON has it: what passes can be read, in time that grows as its size.

A hand or a fault of a disk may have changed the content. ValueError has what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.text_digest import SIZE
from eventlog.xds.answers import Level

_MAX_ROWS: Final = 1 << 26  # of an entry: a range of more would fill the memory
_FACTS: Final = (int, bool, int, str, str)  # part, further parts, tries, answer


def check_named(named: Any) -> Sequence[tuple[str, list[Any]]]:
    """Return the names with their entries. Raise ValueError if the content is no list of these."""
    if not isinstance(named, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in named):
        raise ValueError("it is no list of names with their entries")
    for name, entries in named:
        if not isinstance(name, str) or not isinstance(entries, list):
            raise ValueError("it is no list of names with their entries")
    return named


def check_events(name: str, entries: Iterable[Any], begun: set[str]) -> None:
    """Raise ValueError unless these are entries of events. Add the events whose rows later parts share."""
    for entry in entries:
        if isinstance(entry, dict):
            _check_stretch(name, entry)
        else:
            _check_event(name, entry, begun)


def check_rows(name: str, entries: Iterable[Any]) -> None:
    """Raise ValueError unless these are entries of rows without an event."""
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("sizes") != []:
            raise ValueError(f"{name!r} has an entry that is no list of rows")
        _count_rows(name, entry)


def check_parts(name: str, entries: Iterable[Any]) -> None:
    """Raise ValueError unless these are events, each with a part."""
    for entry in entries:
        _, part = _parts_of(name, entry, str, int)
        if part < 1:
            raise ValueError(f"{name!r} has part {part} of an event")


def check_sums(name: str, entries: Iterable[Any]) -> None:
    """Raise ValueError unless these are sums of a backlog's rows, documents and digests."""
    for entry in entries:
        if min(_parts_of(name, entry, int, int, int)) < 0:
            raise ValueError(f"{name!r} has a negative number")


def _parts_of(name: str, entry: Any, *types: type) -> Sequence[Any]:
    if not isinstance(entry, list) or [*map(type, entry)] != [*types]:
        raise ValueError(f"{name!r} has an entry of another form")
    return entry


def _check_level(name: str) -> None:
    if name not in Level.__members__:
        raise ValueError(f"{name!r} is no level of an answer")


def _check_stretch(name: str, entry: Mapping[str, Any]) -> None:
    """Check consecutive events of one log, whose ids follow from their rows."""
    if not (row_count := _count_rows(name, entry)):
        raise ValueError(f"events of {name} have no rows")
    if type(entry.get("log")) is not str:
        raise ValueError(f"events of {name} have no name of a log")
    _demand_natural(name, entry.get("max_changes"))
    sizes, each = entry.get("sizes"), entry.get("each")
    if "each" in entry:
        if type(each) is not int or each < 1 or row_count % each:
            raise ValueError(f"events of {name} have {each!r} rows each, and there are {row_count} rows")
        count = row_count // each
    else:
        if not isinstance(sizes, list) or not sizes:
            raise ValueError(f"events of {name} have no numbers of rows")
        _demand_ids("numbers of rows of events in", name, sizes)
        if sum(sizes) != row_count:
            raise ValueError(f"events of {name} have {sum(sizes)} rows, and {row_count} are listed")
        count = len(sizes)
    if "digests" in entry:
        _check_digests(name, entry["digests"], count)


def _check_event(name: str, entry: Any, begun: set[str]) -> None:
    """Check an event that is a list of its own. Its rows may be with an earlier part."""
    if not isinstance(entry, list) or len(entry) < 3:
        raise ValueError(f"an entry of {name} is no event")
    run_id, rows, max_changes, *facts = entry
    if type(run_id) is not str or not isinstance(rows, list):
        raise ValueError(f"an entry of {name} is no event")
    _demand_ids("rows of", run_id, rows)
    _demand_natural(run_id, max_changes)
    if facts and isinstance(facts[0], str):
        _check_digests(run_id, facts.pop(0), 1)
    if not facts and rows:
        return
    if [*map(type, facts)] != [*_FACTS[: len(facts)]] or len(facts) not in (0, 3, 5):
        raise ValueError(f"{run_id} has facts of another form")
    if facts and (facts[0] < 1 or facts[2] < 0):
        raise ValueError(f"{run_id} has a negative number")
    if len(facts) > 3:
        _check_level(facts[3])
    if not rows and run_id not in begun:
        raise ValueError(f"{run_id} has no rows")
    if rows and facts and facts[1]:
        begun.add(run_id)


def _check_digests(name: str, written: Any, count: int) -> None:
    """Check Base64 without its padding, which is read where the digests are needed."""
    if not isinstance(written, str):
        raise ValueError(f"the digests of {name} are no text")
    size = (4 * SIZE * count + 2) // 3
    if len(written) != size:
        raise ValueError(f"the digests of {name} have {len(written)} characters, not {size}")
    if not (written.isascii() and written.replace("+", "0").replace("/", "0").isalnum()):
        raise ValueError(f"the digests of {name} are no Base64")


def _demand_natural(name: str, number: Any) -> None:
    if type(number) is not int or number < 0:
        raise ValueError(f"max_changes of {name} is {number!r}")


def _count_rows(name: str, entry: Mapping[str, Any]) -> int:
    """Return how many rows an entry lists. None of its ranges is read."""
    rows, ranges = entry.get("rows"), entry.get("ranges")
    if "rows" in entry and isinstance(rows, list):
        _demand_ids("rows in", name, rows)
        return len(rows)
    if not isinstance(ranges, list) or "rows" in entry or not ranges or len(ranges) % 2:
        raise ValueError(f"an entry of {name} lists no rows")
    _demand_ids("rows in", name, ranges)
    if max(map(sum, zip(ranges[::2], ranges[1::2], strict=True))) > MAX_RECORD_ID:
        raise ValueError(f"a range of rows of {name} ends after {MAX_RECORD_ID}")
    if (count := sum(ranges[1::2])) > _MAX_ROWS:
        raise ValueError(f"an entry of {name} lists {count} rows, and {_MAX_ROWS} are the most")
    return count


def _demand_ids(what: str, name: str, numbers: Sequence[Any]) -> None:
    """Raise ValueError unless these are numbers that rows can have."""
    if numbers and not (
        {*map(type, numbers)} == {int} and min(numbers) > 0 and max(numbers) <= MAX_RECORD_ID
    ):
        raise ValueError(f"{what} {name} are not all between 1 and {MAX_RECORD_ID}")
