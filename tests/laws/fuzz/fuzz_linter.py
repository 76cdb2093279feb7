"""Coverage-guided fuzzing of the queue reader, on demand: python tests/laws/fuzz/fuzz_linter.py [-runs=N]."""

from __future__ import annotations

import sys
from contextlib import suppress

import atheris

with atheris.instrument_imports(include=["eventlog"]):
    from eventlog.core.change import Change
    from eventlog.core.errors import Misuse, Refused
    from tests.formats.linter.helpers import NAMES, ROLLBACK, ROW_1, end, operation, read_queue

CELLS = (
    None,
    "",
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "10",
    "-1",
    "3400",
    "ff" * 12,
    "3b9aca004000",
    "x",
    b"\0",
    1.5,
)


def fuzz(data: bytes) -> None:
    """Read rows with changed and moved cells: only answers, and nothing that did not commit."""
    source = atheris.FuzzedDataProvider(data)
    reported = [operation(2, ROW_1), operation(3, ROW_1, ROW_1), end(), operation(1, ROW_1), end(ROLLBACK)]
    table = [list(reported[source.ConsumeIntInRange(0, 4)]) for _ in range(source.ConsumeIntInRange(0, 12))]
    for address, cells in enumerate(table):
        cells[NAMES.index("SYSLOG_ADDR")] = str(address)
    for _ in range(source.ConsumeIntInRange(0, 12) if table else 0):
        row = table[source.ConsumeIntInRange(0, len(table) - 1)]
        column = source.ConsumeIntInRange(0, len(NAMES) - 1)
        odd = source.ConsumeBool()
        row[column] = source.ConsumeUnicode(8) if odd else source.PickValueInList(list(CELLS))
    ends = any(str(row[NAMES.index("TYP")]).strip(" +0") in ("4", "5") for row in table)
    legacy = source.PickValueInList(["error", "commit", "rollback"])
    answers: list[Change | Refused] = []
    with suppress(Misuse):  # an address may go back
        answers = read_queue(map(tuple, table), legacy_typ5=legacy)
    for answer in answers:
        assert not isinstance(answer, Change) or ends, answer


if __name__ == "__main__":
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()
