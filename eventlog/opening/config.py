"""The settings of the publisher: flag, then environment, then eventlog.toml, then default.

All of them are read and checked before anything is done, and every fault is named at once.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from eventlog.core import toml
from eventlog.core.errors import EventlogError, InvalidDocument, InvalidValue, Misuse
from eventlog.core.plurals import quantity
from eventlog.core.redaction import shown_address
from eventlog.core.settings import (
    build,
    declared,
    read_value,
    unknown_variables,
    variable,
    why_unknown,
)
from eventlog.files.small_files import read_text

S = TypeVar("S")
FILE = Path("eventlog.toml")  # of this folder, if no other is named
_MAX_BYTES = 1 << 20  # of the file

_SECRET = ("password", "token", "options", "command", "init", "stmt")  # SQL may hold secrets too
_TABLE_ENTRIES = {"publish": list, "withhold": list, "max-value": int, "scim": dict}


class InvalidSettings(Misuse):
    """{0} cannot be used: {1}"""


@dataclass(frozen=True)
class Config:
    """The values that were set, each of its setting's type, and the tables of the file that are no
    settings.
    """

    values: Mapping[str, Any]
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)  # [log.columns]
    tables: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)  # [tables.NAME]

    def shown(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that are set, as text without secrets."""
        for name, value in sorted(self.values.items()):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            is_secret = any(word in name for word in _SECRET) and not name.endswith("_file")
            shown = shown_address(text) if name.endswith("url") else text
            yield name.replace("_", "-"), "set, not shown" if is_secret else shown

    def build(self, settings: type[S]) -> S:
        """Return the settings that a declaration makes of these values."""
        return build(settings, self.values)


def read_config(
    declarations: Iterable[type],
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    file: Path | None = None,
) -> Config:
    """Return the settings; InvalidSettings names everything that is wrong with them."""
    fields = {field.name: field for settings in declarations for field in declared(settings)}
    faults = [
        why_unknown(spelling=name, name=name, names=fields) for name in unknown_variables(environment, fields)
    ]
    document, source = read_file(file), str(file or FILE)
    columns = _columns(_take(document, "log", faults, source), faults, source)
    tables = _tables(_take(document, "tables", faults, source), faults)
    values_by_name: dict[str, Any] = {}
    for where, values in (  # a later one overrides an earlier one
        (source, {name.replace("-", "_"): value for name, value in document.items()}),
        ("environment", {n: environment[variable(n)] for n in fields if variable(n) in environment}),
        ("flag", {name: value for name, value in flags.items() if value is not None}),
    ):
        for name, value in values.items():
            if name not in fields:
                faults.append(why_unknown(_spell(where, name), name, fields))
                continue
            try:
                values_by_name[name] = read_value(fields[name], value)
            except EventlogError as fault:
                faults.append(f"{_spell(where, name)}: {fault}")
    if faults:
        raise InvalidSettings(quantity(len(faults), "setting"), "; ".join(faults))
    return Config(values_by_name, columns, tables)


def read_file(file: Path | None) -> dict[str, Any]:
    """Return the settings file; nothing if none is named and there is none in this folder."""
    path = file or FILE
    if file is None and not path.exists():
        return {}
    try:
        text = read_text(path, _MAX_BYTES)
    except OSError as fault:
        raise Misuse(f"{path}: {fault.strerror}") from None
    except InvalidDocument as fault:
        raise Misuse(str(fault)) from None
    try:
        return toml.load(text)
    except InvalidDocument as fault:
        raise Misuse(f"{path}: {fault}") from None


def statements(text: str | None) -> tuple[str, ...]:
    """Return the statements of a setting, separated by semicolons."""
    return tuple(part for piece in (text or "").split(";") if (part := piece.strip()))


_NAME = re.compile(r'(?:"[^"]*"|[^\s,;"])+')


def names(text: str | None) -> tuple[str, ...]:
    """Return the names of a setting, separated by blanks, commas or semicolons, or in double quotes."""
    if (text or "").count('"') % 2:
        raise InvalidValue(text, "a list of names: a double quote is not closed")
    return tuple(name.replace('"', "") for name in _NAME.findall(text or ""))


def _take(document: dict[str, Any], name: str, faults: list[str], source: str) -> dict[str, Any]:
    """Remove an entry that must be a table from the document. Return it; nothing if it is none."""
    entries = document.pop(name, {})
    if isinstance(entries, dict):
        return entries
    faults.append(f"{source}: `{name}` must be a table")
    return {}


def _columns(section: dict[str, Any], faults: list[str], source: str) -> dict[str, str]:
    """Return the names of the log's columns, which are the only content of [log]."""
    columns = _take(section, "columns", faults, f"{source}: [log]")
    faults.extend(f"{source}: [log] {name}: there is no such setting, only [log.columns]" for name in section)
    for name, called in columns.items():
        if not isinstance(called, str):
            faults.append(f"{source}: [log.columns] {name}: {called!r} is not the name of a column, a text")
    return columns


def _tables(sections: Mapping[str, Any], faults: list[str]) -> dict[str, Mapping[str, Any]]:
    for table, entries in sections.items():
        for name, value in entries.items() if isinstance(entries, dict) else [("", None)]:  # one fault
            kind = _TABLE_ENTRIES.get(name)
            if kind is None or not isinstance(value, kind):
                allowed = "publish and withhold with column names, max-value with bytes, scim with columns"
                faults.append(f"[tables.{table}] {name}: it holds {allowed}")
    return {table: entries for table, entries in sections.items() if isinstance(entries, dict)}


def _spell(where: str, name: str) -> str:
    """Return how a setting is written on the command line, in the environment, or in a file."""
    option = name.replace("_", "-")
    return {"flag": f"--{option}", "environment": variable(name)}.get(where, f"{where}: {option}")
