"""An empty lake for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.lake import FORMATS, LakeFolder
from tests.transfer.lake.growing import GrowingInput


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> LakeFolder:
    """A lake of each format."""
    return FORMATS[request.param](tmp_path / "lake")


@pytest.fixture
def log(lake: LakeFolder, tmp_path: Path) -> GrowingInput:
    return GrowingInput(lake, tmp_path)
