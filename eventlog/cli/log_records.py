"""How records of the program's own log look: a sentence for people, or the same with its facts as JSON."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from eventlog.core.redaction import visible, without_secrets

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Records(logging.Formatter):
    """A line a record: time, level, sentence; of an exception its last words, or with `tracebacks` all."""

    def __init__(self, tracebacks: bool = False) -> None:
        super().__init__("%(asctime)sZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        """Write the record on one line, whatever its message contains, and without secrets."""
        line = super().format(record).replace("\r", "\\r").replace("\n", "\\n")
        return visible(without_secrets(line))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return super().formatException(ei) if self._tracebacks else f"{ei[0].__name__}: {ei[1]}"


class RecordsAsJson(logging.Formatter):
    """A JSON object a record, with the facts of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        facts = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
        fields = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        bare = {name: _without_secrets(value) for name, value in (fields | facts).items()}
        return visible(json.dumps(bare, default=str, ensure_ascii=False))


def _without_secrets(value: object) -> object:
    return without_secrets(value) if isinstance(value, str) else value
