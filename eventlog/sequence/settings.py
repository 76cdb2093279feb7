"""Settings of sources whose changes have one sequence."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting


@dataclass(frozen=True, slots=True)
class StreamSettings:
    order: str = setting(
        "sequence",
        "the order of changes: by their sequence over all inputs of a task, or as the inputs have them",
        choices=("sequence", "as-is"),
    )
    open_transactions: str = setting(
        "stop",
        "what becomes of a transaction of which changes are missing: the run stops, its changes are refused,"
        " or what is there is written",
        choices=("stop", "refuse", "deliver"),
    )
    open_time: float = setting(
        600.0,
        "seconds that a transaction of a topic may be open with --follow",
        metavar="SECONDS",
        within=(1, 1e9),
    )
    open_bytes: int = setting(
        10 << 30, "bytes that open transactions may take on disk with --follow", metavar="N", within=(1, 1e15)
    )
    settle: float = setting(
        60.0,
        "seconds by the source's clock after which rows of change tables are taken as all there",
        metavar="SECONDS",
        within=(0, 86_400),
    )
    accept_late: bool = setting(
        False, "deliver rows of change tables now that became visible after later ones were delivered"
    )
    poll_interval: float = setting(
        5.0, "seconds between two looks with --follow", metavar="SECONDS", within=(0.1, 86_400)
    )
    since: str = setting("", "read what stands behind this sequence", metavar="SEQ")
    ended: bool = False  # a transaction whose last change did not come lacks it, as it may lack others
