"""Adding a format, a source, a target or a sink: the examples of docs/contribute/architecture.md, tried."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from eventlog import sinks
from eventlog.sinks.sink import Item, OutgoingDocument
from eventlog.transfer.connectors import CONNECTORS
from eventlog.transfer.convert import convert
from eventlog.transfer.format_registry import FORMATS
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from tests.kit.support import CLOCK

pytestmark = pytest.mark.quick

PAGE = Path(__file__).parents[2] / "docs" / "contribute" / "architecture.md"


def example(heading: str) -> ModuleType:
    """Return the module that the page shows under a heading."""
    section = PAGE.read_text("utf-8").partition(f"## {heading}\n")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    module = ModuleType("toy")
    sys.modules["toy"] = module  # where a dataclass looks for its module
    exec(code[1], module.__dict__)
    return module


def test_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "toy", example("Adding a format").FORMAT)
    toy, changes, again = (tmp_path / name for name in ("a.toy", "b.jsonl", "c.toy"))
    toy.write_text("usr 1\ngrp 2\n")
    for job in (
        Job("toy", "changes", (str(toy),), str(changes)),
        Job("changes", "toy", (str(changes),), str(again)),
    ):
        convert(job, Report(print, strict=True), CLOCK)
    assert [line.count('"insert"') for line in changes.read_text().splitlines()] == [1, 1]
    assert again.read_text() == toy.read_text()


def test_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read it on from its state, through the loop of all sources."""
    toy = example("Adding a source")
    monkeypatch.setitem(CONNECTORS, ("changes", "url"), toy.CONNECTOR)
    out = tmp_path / "out.jsonl"
    job = Job("changes", "changes", output=str(out), url="toy://names", state=tmp_path / "state")
    for names in (["Jack", "Jane"], ["Jim"]):
        toy.NAMES.extend(names)
        convert(job, Report(print, strict=True), CLOCK)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["fields"][0]["after"] for line in lines] == ["Jack", "Jane", "Jim"]


def test_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = example("Adding a target")
    monkeypatch.setitem(CONNECTORS, ("changes", "url"), toy.CONNECTOR)
    lines = tmp_path / "in.jsonl"
    lines.write_text('{"op": "delete", "table": "usr", "key": {"idu": 1}}\n' * 2)
    convert(Job("changes", "changes", (str(lines),), url="toy://keys"), Report(print, strict=True), CLOCK)
    assert toy.KEYS == [(("idu", 1),)] * 2


def test_a_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    module = example("Adding a sink")
    monkeypatch.setitem(sinks.SINKS, "toy", "toy")
    sink = sinks.open_sink("toy", {})
    document = OutgoingDocument("1", [Item("log:1", "<delete/>")])
    assert [reply.arrived for reply in sink.deliver([document])] == [True]
    assert ["<delete/>" in text for text in module.ToySink.documents] == [True]
