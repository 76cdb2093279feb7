"""How a setting is declared: a field of a frozen dataclass, with the words of its help.

The same declaration makes the command-line flag, the environment variable, the line of the
configuration file and the page of the documentation. A name has one type, one meaning and one default: what
several dataclasses declare is written once, as a function or a base class.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from eventlog.core.errors import InvalidValue, Misuse, NotText, similar

S = TypeVar("S")


class WrongType(Misuse):
    """{0} is {1!r}: expected {2}"""


def setting(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    metavar: str = "",
    within: tuple[float, float] | None = None,
    check: Callable[[str], object] | None = None,
) -> Any:
    """Return a dataclass field that is a setting; `within` are the least and the greatest number, `check`
    raises an EventlogError for a text that is not legal.
    """
    facts = {"help": help, "choices": choices, "metavar": metavar, "within": within, "check": check}
    return dataclasses.field(default=default, metadata=facts)


def declared(settings: type) -> Iterator[dataclasses.Field[Any]]:
    """Yield the settings of a dataclass, in their order; raise TypeError for one of an unknown type."""
    for field in dataclasses.fields(settings):
        if "help" in field.metadata:
            kind_of(field)
            yield field


def build(settings: type[S], values: Mapping[str, Any]) -> S:
    """Return the settings with the values of those that the dataclass has; raise WrongType for a value of
    another type than the declared one.
    """
    arguments = {}
    for name, kind in _kinds(settings):  # type: ignore[arg-type]
        value = values.get(name)
        if value is None:
            continue
        if kind is not None and not kind.holds(value):
            raise WrongType(name.replace("_", "-"), value, kind.takes)
        arguments[name] = value
    return settings(**arguments)


_PREFIX = "EVENTLOG_"
# No settings: variables of tests and containers, and those that Kubernetes makes for a service of our name.
_NO_SETTING = re.compile(
    rf"{_PREFIX}(?:(?:(?:TEST|PROOF)_\w+|PEERS|PICTURES|WRITE_GOLDEN|PASSWORD|VERSION|FILES)=.*"
    r"|(?:\w+_)?(?:SERVICE_HOST=|SERVICE_PORT(?:_\w+)?=|PORT_\d+_\w+=|PORT=(?:tcp|udp|sctp)://).*)",
    re.DOTALL,
)


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"{_PREFIX}{name.upper()}"


def unknown_variables(environment: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return the variables that look like a setting, and are none of these."""
    variables = {variable(name) for name in names}
    ours = [name for name in environment if name.startswith(_PREFIX) and name not in variables]
    return [name for name in ours if not _NO_SETTING.fullmatch(f"{name}={environment[name]}")]


def why_unknown(spelling: str, name: str, names: Iterable[str]) -> str:
    """Return that there is no setting of a name, with a question about one like it."""
    question = similar(name.lower().removeprefix(_PREFIX.lower()), names).replace("_", "-")
    return f"{spelling}: there is no such setting{question}"


def is_flag(field: dataclasses.Field[Any]) -> bool:
    """Return whether a setting is on or off."""
    return kind_of(field) is _KINDS["bool"]


def is_file(field: dataclasses.Field[Any]) -> bool:
    """Return whether a setting is the name of a file or folder, whose bytes need not be text."""
    return field.metadata["metavar"] in ("FILE", "FOLDER")


def demand_text(value: object) -> None:
    """Raise NotText for bytes of the command line or the environment that are not of its encoding."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotText(value) from None


def read_value(field: dataclasses.Field[Any], value: Any) -> Any:
    """Return the value of a setting, of its type and within its limits; raise InvalidValue with what is
    legal, and NotText for what is none.
    """
    if not is_file(field):
        demand_text(value)
    kind = kind_of(field)
    try:
        read = kind.parse(value)
    except ValueError:
        raise InvalidValue(str(value), kind.takes) from None
    choices, within, check = (field.metadata[fact] for fact in ("choices", "within", "check"))
    for item in (read if isinstance(read, tuple) else (read,)) if choices else ():
        if str(item) not in choices:
            raise InvalidValue(str(item), f"one of {', '.join(choices)}")
    if within is not None and not within[0] <= read <= within[1]:
        raise InvalidValue(value, f"between {within[0]} and {within[1]}")
    if check is not None:
        check(read)
    return read


class SettingKind(NamedTuple):
    """A type of settings."""

    takes: str  # what messages name as legal
    parse: Callable[
        [Any], Any
    ]  # a value of the command line, the environment, a file or a caller; or ValueError
    holds: Callable[[Any], bool]  # whether a parsed value is of the type


def kind_of(field: dataclasses.Field[Any]) -> SettingKind:
    """Return the type of a setting; raise TypeError for an unknown one, or a default of another one."""
    annotation = str(field.type)
    kind = _KINDS.get(annotation.removesuffix(" | None"))
    if kind is None:
        raise TypeError(f"{field.name} is declared as {annotation}; a setting is one of {', '.join(_KINDS)}")
    if field.default is None if annotation.endswith(" | None") else kind.holds(field.default):
        return kind
    raise TypeError(f"{field.name} is declared as {annotation}, and its default is {field.default!r}")


@cache
def _kinds(settings: type) -> Sequence[tuple[str, SettingKind | None]]:
    """Return the names of a dataclass's fields, each with its type, or with None if it is no setting."""
    kinds = {field.name: kind_of(field) for field in declared(settings)}
    return [(field.name, kinds.get(field.name)) for field in dataclasses.fields(settings)]


_WORDS = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}


def _parse_bool(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in _WORDS:
        raise ValueError
    return _WORDS[word]


def _parse_text(value: Any) -> str:
    if isinstance(value, bool | Mapping):
        raise ValueError
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _parse_texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else str(value).split(",")
    return tuple(str(item).strip() for item in items if str(item).strip())


def _is_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)


_KINDS = {
    "bool": SettingKind("1, yes, true, 0, no or false", _parse_bool, lambda value: isinstance(value, bool)),
    "int": SettingKind(
        "a whole number", lambda value: int(str(value).strip()), lambda value: type(value) is int
    ),
    "float": SettingKind(
        "a number", lambda value: float(str(value).strip()), lambda value: type(value) in (int, float)
    ),
    "str": SettingKind("a text", _parse_text, lambda value: isinstance(value, str)),
    "tuple[str, ...]": SettingKind("texts with commas between them", _parse_texts, _is_texts),
}
