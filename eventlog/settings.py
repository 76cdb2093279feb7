"""How a setting is declared: a field of a frozen dataclass, with the words of its help.

The same declaration makes the command-line flag, the environment variable, the line of the
configuration file and the page of the documentation. A name means the same wherever it is declared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

S = TypeVar("S")


def setting(default: Any, help: str, *, choices: tuple[str, ...] = (), metavar: str = "") -> Any:
    """A dataclass field that is a setting."""
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices, "metavar": metavar})


def declared(settings: type) -> Iterator[dataclasses.Field[Any]]:
    """The settings of a dataclass, in their order."""
    for field in dataclasses.fields(settings):
        if "help" in field.metadata:
            yield field


def build(settings: type[S], given: Mapping[str, Any]) -> S:
    """The settings with what was given for those that the dataclass declares."""
    names = {field.name for field in dataclasses.fields(settings)}  # type: ignore[arg-type]
    return settings(**{name: given[name] for name in names if given.get(name) is not None})


def read_list(text: str) -> tuple[str, ...]:
    """The items of a list, with commas between them."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def value_reader(field: dataclasses.Field[Any]) -> Callable[[str], Any]:
    """What reads the text of a setting."""
    return _READERS.get(str(field.type).split(" ")[0], str)


_READERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "bool": bool,
    "float": float,
    "tuple[str,": read_list,
}
