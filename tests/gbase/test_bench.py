"""The benchmark runs, and what it decodes is whole."""

from __future__ import annotations

import pytest

from bench import gbase as bench
from tests.gbase.helpers import changes_of, read_all

pytestmark = pytest.mark.quick


def test_the_benchmark_prints_a_line_for_each_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "TRANSACTIONS", 2)
    monkeypatch.setattr(bench, "ROUNDS", 1)
    bench.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == list(bench.TABLES)


@pytest.mark.parametrize("name", bench.TABLES)
def test_its_streams_are_sound(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(bench, "TRANSACTIONS", 2)
    text, values = bench.TABLES[name]
    changes = changes_of(read_all([bench.make_stream(text, values)]))
    assert [tuple(change.after.values()) for change in changes] == [
        values(at) for at in range(2 * bench.ROWS_EACH)
    ]
