"""Fixtures of the tests of upgrades: this version and the next one, as commands on a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.kit.commands import Done, Shell
from tests.kit.databases import Database
from tests.laws.upgrade.next_version import make_next_version, shell_of

Call = Callable[..., Done]


@pytest.fixture(scope="session")
def next_version(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """The commands of the next version."""
    tree = make_next_version(tmp_path_factory.mktemp("next"))
    shell = shell_of(tree, tmp_path_factory.mktemp("folder"))
    yield shell
    shell.close()


@pytest.fixture
def ours(database: Database, tmp_path: Path) -> Call:
    """Run a command of this version on the database."""
    return partial(Shell(tmp_path).run, EVENTLOG_URL=database.address)


@pytest.fixture
def newer(database: Database, next_version: Shell) -> Call:
    """Run a command of the next version on the database."""
    return partial(next_version.run, EVENTLOG_URL=database.address)
