"""An empty lake for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.lake import FORMATS, LakeFolder
from tests.transfer.lake.growing import GrowingInput


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LakeFolder]:
    """A lake of each format."""
    with FORMATS[request.param](tmp_path / "lake") as folder:
        yield folder


@pytest.fixture
def log(lake: LakeFolder, tmp_path: Path) -> GrowingInput:
    return GrowingInput(lake, tmp_path)
