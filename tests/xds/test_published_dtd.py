"""The documents of the golden cases, held against the DTD that the engine's maker publishes.

It is in none of the registries that we may fetch from: EVENTLOG_TEST_NDS_DTD names a copy of `nds.dtd`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.fold.test_golden_events import CASES, settings
from tests.kit.support import run_convert, sections

pytestmark = pytest.mark.quick

NAMED = os.environ.get("EVENTLOG_TEST_NDS_DTD")


@pytest.mark.skipif(
    not NAMED, reason="nds.dtd: SKIPPED: no registry has it, and EVENTLOG_TEST_NDS_DTD names none"
)
def test_documents_are_valid_by_the_published_dtd(tmp_path: Path) -> None:
    dtd = etree.DTD(str(NAMED))
    seen = 0
    for case in CASES:
        parts = sections(case)
        current = {"usr": parts["current usr"]} if "current usr" in parts else {}
        for add in ("modify", "add"):
            given: dict[str, Any] = {"insert_query_back": add, **settings(parts.get("settings", ""))}
            text, _ = run_convert(tmp_path, "log", "xds", parts["log"], current=current, **given)
            for line in text.splitlines():
                assert dtd.validate(etree.fromstring(line)), (case.stem, line, dtd.error_log)
                seen += 1
    assert seen > len(CASES)
