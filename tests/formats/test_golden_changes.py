"""The golden cases of formats: records as a vendor writes them, good and bad, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventlog.core import tablesfile
from tests.kit.support import run_convert, sections

pytestmark = pytest.mark.quick

CASES = sorted((Path(__file__).parents[1] / "golden" / "changes").glob("*.txt"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_records_give_the_changes_of_the_case(case: Path, tmp_path: Path) -> None:
    parts = sections(case)
    options: dict[str, Any] = dict(line.split(" = ") for line in parts["read"].splitlines())
    source, name, tables = options.pop("format"), options.pop("file"), tablesfile.read(parts["tables"])
    content = parts["input"] if "input" in parts else bytes.fromhex(parts["input hex"])
    text, refused = run_convert(tmp_path, source, "changes", content, name=name, tables=tables, **options)
    reported = "".join(f"{item.where}: {item.reason}\n" for item in refused)
    assert text == parts["changes"]
    assert reported.replace(f"{tmp_path}/", "") == parts["refused"]
