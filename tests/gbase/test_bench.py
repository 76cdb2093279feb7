"""The benchmark runs, and what it decodes is whole."""

from __future__ import annotations

import pytest

from bench import formats as bench
from tests.gbase.helpers import changes_of, read_all

pytestmark = pytest.mark.quick


def test_the_benchmark_prints_a_line_for_each_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, few in (("TRANSACTIONS", 2), ("ROUNDS", 1), ("COUNT", 20)):
        monkeypatch.setattr(bench, name, few)
    bench.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("  ")[0] for line in lines[-2:]] == list(bench.STREAMS)
    assert len(lines) == 8


@pytest.mark.parametrize("name", bench.STREAMS)
def test_its_streams_are_sound(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(bench, "TRANSACTIONS", 2)
    text, values = bench.STREAMS[name]
    changes = changes_of(read_all([bench.make_stream(text, values)]))
    assert [tuple(change.after.values()) for change in changes] == [
        values(at) for at in range(2 * bench.ROWS_EACH)
    ]
