"""An empty lake for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transfer.lake.growing import GrowingInput


@pytest.fixture
def log(tmp_path: Path) -> GrowingInput:
    return GrowingInput(tmp_path)
