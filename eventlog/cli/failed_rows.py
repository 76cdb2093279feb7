"""The options that select failed rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

table_option = click.option("--table", help="only rows of this table_name")
reason_option = click.option("--reason", help="only rows whose reason holds these words")
ids_argument = click.argument("ids", nargs=-1, type=int, metavar="[RECORD_ID]...")


def which_options(command: F) -> F:
    """Return the ids, the table and the words of the reason."""
    for option in (ids_argument, reason_option, table_option):
        command = option(command)
    return command
