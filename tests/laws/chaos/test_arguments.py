"""The arguments of `make chaos` choose among the modes that each database has."""

from __future__ import annotations

import pytest

from tests.laws.chaos.__main__ import choose_modes, main
from tests.laws.chaos.run import MODES

pytestmark = pytest.mark.quick


def test_a_mode_runs_on_the_databases_that_have_it() -> None:
    assert choose_modes(MODES, ["slot"]) == [("PostgreSQL", "slot")]
    assert choose_modes(MODES, ["compare"]) == [("PostgreSQL", "compare"), ("MariaDB", "compare")]
    assert len(choose_modes(MODES, None)) == sum(map(len, MODES.values()))


def test_a_database_without_the_mode_is_misuse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["chaos", "--database", "MariaDB", "--mode", "slot"])
    with pytest.raises(SystemExit):
        main()
    assert "MariaDB has no mode slot: choose update, delete, compare" in capsys.readouterr().err
