"""Outside judges: other programs that read the same bytes and rows as ours, with the same result.

`.ci/judges` fetches them into the folder that EVENTLOG_PEERS names. Without its judge a test is skipped with
the reason; it fails if CI_FULL is set.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from bench.peers import installing


def java(name: str) -> list[str]:
    """Return the jars of a judge."""
    try:
        return installing.jars(name)
    except installing.Skipped as reason:
        absent(name, str(reason))


def go_tpc() -> Path:
    """Return the program of go-tpc."""
    try:
        return installing.go_tpc()
    except installing.Skipped as reason:
        absent("go-tpc", str(reason))


def absent(name: str, reason: str) -> NoReturn:
    """The test cannot run, for a judge is not there."""
    if os.environ.get("CI_FULL"):
        pytest.fail(f"{name} is not there: {reason}")
    pytest.skip(f"{name}: SKIPPED: {reason}")
