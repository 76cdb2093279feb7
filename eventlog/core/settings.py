"""How a setting is declared: a field of a frozen dataclass, with the words of its help.

The same declaration makes the command-line flag, the environment variable, the line of the
configuration file and the page of the documentation. A name means the same wherever it is declared.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from eventlog.core.errors import InvalidValue, NotText, similar

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
    """Return a dataclass field that is a setting; `within` are the least and the greatest number, `check`
    raises an EventlogError for a text that is not legal.
    """
    facts = {"help": help, "choices": choices, "metavar": metavar, "within": within, "check": check}
    return dataclasses.field(default=default, metadata=facts)


def declared(settings: type) -> Iterator[dataclasses.Field[Any]]:
    """Yield the settings of a dataclass, in their order."""
    for field in dataclasses.fields(settings):
        if "help" in field.metadata:
            yield field


def build(settings: type[S], values: Mapping[str, Any]) -> S:
    """Return the settings with the values of those that the dataclass declares."""
    names = {field.name for field in dataclasses.fields(settings)}  # type: ignore[arg-type]
    return settings(**{name: values[name] for name in names if values.get(name) is not None})


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
    return _type_name(field) == "bool"


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
    reader: Callable[[Any], Any] = _READERS.get(_type_name(field), _read_text)
    read = reader(value)
    choices, within, check = (field.metadata[fact] for fact in ("choices", "within", "check"))
    for item in (read if isinstance(read, tuple) else (read,)) if choices else ():
        if str(item) not in choices:
            raise InvalidValue(str(item), f"one of {', '.join(choices)}")
    if within is not None and not within[0] <= read <= within[1]:
        raise InvalidValue(value, f"between {within[0]} and {within[1]}")
    if check is not None:
        check(read)
    return read


_TRUE = frozenset(("1", "yes", "true"))
_FALSE = frozenset(("0", "no", "false"))


def _type_name(field: dataclasses.Field[Any]) -> str:
    return str(field.type).split(" ")[0].split("[")[0]


def _read_bool(value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in _TRUE | _FALSE:
        raise InvalidValue(str(value), "1, yes, true, 0, no or false")
    return text in _TRUE


def _number(kind: type, words: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return kind(str(value).strip())
        except ValueError:
            raise InvalidValue(str(value), words) from None

    return read


def _read_list(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else str(value).split(",")
    return tuple(str(item).strip() for item in items if str(item).strip())


def _read_text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "bool": _read_bool,
    "int": _number(int, "a whole number"),
    "float": _number(float, "a number"),
    "tuple": _read_list,
}
