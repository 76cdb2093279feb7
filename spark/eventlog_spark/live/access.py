"""How tasks reach the database: through our own SQL layer, in the snapshot that the driver shares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy.engine import URL

from eventlog.sql.connect import connect_to_log
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log


@dataclass(frozen=True)
class Access:
    """What a task must know to see the log; it travels in pickled code only, for it holds the password."""

    url: URL  # which hides its password from whoever prints it
    connection_init: tuple[str, ...] = field(repr=False)
    log: Log
    shared: str | None  # the driver's snapshot; None where the database shares none

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """The shared snapshot, else one of now."""
        engine = connect_to_log(self.url, self.connection_init)
        try:
            store = Store(engine, self.log)
            with store.snapshot() if self.shared is None else store.shared_snapshot(self.shared) as snapshot:
                yield snapshot
        finally:
            engine.dispose()
