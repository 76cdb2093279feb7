"""The golden cases: log rows, current rows, and the events that come out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.kit.support import run_convert, sections
from tests.xds.dtd import check_valid

pytestmark = pytest.mark.quick

CASES = sorted((Path(__file__).parents[1] / "golden" / "events").glob("*.txt"))
ADD = "documents with insert-query-back = add"


def settings(text: str) -> dict[str, int]:
    pairs = (line.split(" = ") for line in text.splitlines())
    return {name.replace("-", "_"): int(value) for name, value in pairs}


def events(folder: Path, parts: dict[str, str], **options: Any) -> str:
    """Return the events of a case, one a line, their documents taken off."""
    current = {"usr": parts["current usr"]} if "current usr" in parts else {}
    options |= settings(parts.get("settings", ""))
    text, refused = run_convert(folder, "log", "xds", parts["log"], current=current, **options)
    assert not any(item.fault for item in refused), refused
    check_valid(text)
    matches = [re.fullmatch(r"<nds .*<input>(.*)</input></nds>", line) for line in text.splitlines()]
    return "".join(f"{match[1]}\n" for match in matches if match)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_rows_give_the_documents_of_the_case(case: Path, tmp_path: Path) -> None:
    parts = sections(case)
    assert events(tmp_path, parts) == parts["documents"]


@pytest.mark.parametrize("case", [c for c in CASES if ADD in sections(c)], ids=lambda case: case.stem)
def test_rows_give_an_add_where_that_is_set(case: Path, tmp_path: Path) -> None:
    parts = sections(case)
    assert events(tmp_path, parts, insert_query_back="add") == parts[ADD]


def test_every_event_type_has_its_case() -> None:
    assert {case.stem[0] for case in CASES if case.stem[0].isdigit()} == set("12345678")
