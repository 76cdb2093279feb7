"""How a setting is declared: a field of a frozen dataclass, with the words of its help.

The same declaration makes the command-line flag, the environment variable, the line of the
configuration file and the page of the documentation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any


def setting(default: Any, help: str, *, choices: tuple[str, ...] = (), metavar: str = "") -> Any:
    """A dataclass field that is a setting."""
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices, "metavar": metavar})


def declared(settings: type) -> Iterator[dataclasses.Field[Any]]:
    """The settings of a dataclass, in their order."""
    for declared_field in dataclasses.fields(settings):
        if "help" in declared_field.metadata:
            yield declared_field
