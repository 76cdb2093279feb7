"""Commands over several tables: each table is tried, and those that were refused are named at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.plurals import quantity


class TablesRefused(EventlogError):
    """{0} of {1} refused: {2}; {3}: {4}"""


def do_each(
    names: Sequence[str],
    act: Callable[[str], object],
    done: str,
    report: Callable[[str], object],
    general: tuple[type[EventlogError], ...] = (Misuse,),
) -> None:
    """Act on each table. Report the errors at the end, and raise TablesRefused if there were any.

    A single table's error is raised as it is, and a `general` one, which concerns all tables, at once.
    """
    if len(names) == 1:
        act(names[0])
        return
    refused = dict[str, str]()
    for name in names:
        try:
            act(name)
        except general:
            raise
        except EventlogError as fault:
            refused[name] = str(fault)
    for reason in dict.fromkeys(refused.values()):
        report(reason)
    demand_all(names, refused, done)


def demand_all(names: Iterable[str], refused: Iterable[str], done: str) -> None:
    """Raise TablesRefused, which names the refused tables and then the others, unless none was refused."""
    refused_names = [*refused]
    if refused_names:
        accepted_names = [name for name in dict.fromkeys(names) if name not in refused_names]
        tables = quantity(len(refused_names) + len(accepted_names), "table")
        listed = ", ".join(refused_names), done, ", ".join(accepted_names) or "none"
        raise TablesRefused(len(refused_names), tables, *listed)
