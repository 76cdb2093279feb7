"""Settings of sources whose changes have one sequence."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.core.shared_settings import open_bytes_setting


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The settings of inputs with a sequence."""

    order: str = setting(
        "sequence",
        "the order of changes: by their sequence over all inputs, or as the inputs have them",
        choices=("sequence", "as-is"),
    )
    open_transactions: str = setting(
        "stop",
        "a transaction with missing changes: stop the run, refuse its changes, or write those that exist",
        choices=("stop", "refuse", "deliver"),
    )
    open_time: float = setting(
        600.0,
        "seconds that a transaction of a topic may be open with --follow",
        metavar="SECONDS",
        within=(1, 1e9),
    )
    open_bytes: int = open_bytes_setting()
    settle: float = setting(
        60.0,
        "seconds by the source's clock after which rows of change tables are taken as all there",
        metavar="SECONDS",
        within=(0, 86_400),
    )
    accept_late: bool = setting(
        False, "deliver late rows of change tables: those that became visible after later ones were delivered"
    )
    follow_interval: float = setting(
        5.0, "seconds between two looks with --follow", metavar="SECONDS", within=(0.1, 604_800)
    )
    since: str = setting("", "read only changes after this sequence", metavar="SEQ")
    ended: bool = False  # nothing more comes, so a transaction without its last change lacks it
