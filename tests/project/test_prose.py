"""What the check of prose asks of docstrings."""

from __future__ import annotations

import ast

import pytest

from tests.project.prose import undocumented

pytestmark = pytest.mark.quick

LIBRARY = """
def read(): pass
def write():
    \"\"\"Write it.\"\"\"
def _bare(): pass
class Row: pass
"""


def faults(user: str, importing: str) -> list[str]:
    modules = {"eventlog.files.csv": ast.parse(LIBRARY), user: ast.parse(importing)}
    return [name for _, _, name in undocumented(modules)]


def test_a_name_that_another_room_imports_has_a_docstring() -> None:
    importing = "from eventlog.files.csv import read, write, Row"
    assert faults("eventlog.transfer.job", importing) == ["read", "Row"]
    assert faults("eventlog_spark.io", importing) == ["read", "Row"]


def test_a_name_within_its_room_needs_none() -> None:
    assert faults("eventlog.files.packed.gzip", "from eventlog.files.csv import read, Row") == []
