"""How a setting is declared: a field of a frozen dataclass, with the words of its help.

The same declaration makes the command-line flag, the environment variable, the line of the
configuration file and the page of the documentation. A name means the same wherever it is declared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

S = TypeVar("S")


def setting(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    metavar: str = "",
    within: tuple[float, float] | None = None,
    check: Callable[[str], object] | None = None,
) -> Any:
    """A dataclass field that is a setting; `within` are the least and the greatest number, `check` raises
    an EventlogError for a text that is not legal."""
    told = {"help": help, "choices": choices, "metavar": metavar, "within": within, "check": check}
    return dataclasses.field(default=default, metadata=told)


def declared(settings: type) -> Iterator[dataclasses.Field[Any]]:
    """The settings of a dataclass, in their order."""
    for field in dataclasses.fields(settings):
        if "help" in field.metadata:
            yield field


def build(settings: type[S], given: Mapping[str, Any]) -> S:
    """The settings with what was given for those that the dataclass declares."""
    names = [field.name for field in declared(settings)]
    return settings(**{name: given[name] for name in names if given.get(name) is not None})


def value_type(field: dataclasses.Field[Any]) -> type:
    """The type that a setting's text is read as."""
    return {"int": int, "bool": bool, "float": float}.get(str(field.type).split(" ")[0], str)
