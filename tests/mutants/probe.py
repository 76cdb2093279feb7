"""What a probe calls: it writes down that the test of this moment executes the code of a fault."""

from __future__ import annotations

import os

FOLDER = "MUTANTS_REACHED"  # the variable that names the folder of the records

_written: set[tuple[str, str]] = set()


def reached(fault: str) -> None:
    """Record that the present test reached a fault. Programs that a test starts have its name from pytest."""
    test, folder = os.environ.get("PYTEST_CURRENT_TEST"), os.environ.get(FOLDER)
    if test and folder and (fault, test) not in _written:
        _written.add((fault, test))
        with open(f"{folder}/{os.getpid()}", "a", encoding="utf-8") as record:
            record.write(f"{fault}\t{test}\n")
