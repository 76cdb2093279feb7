"""A command with a server of ours at the other end."""

from __future__ import annotations

import sys
from typing import NamedTuple

import pytest

from eventlog.cli import main
from tests.formats.gbase.world import World

ADDRESS = "informix://cdc@localhost:9088/shop?server=ol1"


class Live(NamedTuple):
    """A world, and commands that reach it."""

    world: World
    patch: pytest.MonkeyPatch
    output: pytest.CaptureFixture[str]

    def insert(self, *keys: int, table: str = "shop:own.t1") -> None:
        """Insert rows in one transaction."""
        transaction = self.world.begin()
        for key in keys:
            self.world.change(transaction, table, key)
        self.world.end(transaction, keep=True)

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run a command; return its exit code and its output."""
        self.patch.setattr(sys, "argv", ["eventlog", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.output.readouterr()
        return int(ended.value.code or 0), out, err

    def capture(self, *words: str) -> tuple[int, str, str]:
        """Run `capture` of the first table."""
        return self.run("capture", ADDRESS, "--table", "own.t1", *words)
