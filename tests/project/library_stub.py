"""The types of `import eventlog`, made of the settings and of the functions that take them.

An editor completes the settings of a function, and a type checker knows their names and values.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import Field
from itertools import groupby
from textwrap import wrap
from typing import Any, NamedTuple

import eventlog
from eventlog import library
from eventlog.core.settings import declared
from eventlog.fold import Rules
from eventlog.formats.log import LogSettings
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.format_registry import FORMATS
from eventlog.xds.xds_settings import XdsSettings

_OF_FORMATS = ("source", "target")  # parameters that name a format
_WIDTH = 104  # of a help, in its quotes
_HEAD = '''"""What `import eventlog` offers, with the types of its settings. This file is made by
`python -m tests.project.generated`; `__init__.py` loads each name when it is first used.
"""
'''


class SettingsType(NamedTuple):
    """The settings that functions take by name, as a TypedDict of the stub."""

    name: str
    base: str
    declaring: Sequence[type]
    functions: Sequence[str]
    without: Sequence[str] = ()


TYPES = (
    SettingsType("_FoldSettings", "TypedDict", (Rules, LogSettings), ("explain",)),
    SettingsType("_DocumentSettings", "_FoldSettings", (XdsSettings,), ("documents",), ("batch_size",)),
    SettingsType(
        "_FormatSettings",
        "TypedDict",
        tuple(form.settings for form in FORMATS.values()),
        ("records", "write"),
    ),
    SettingsType("_ChangeSettings", "_FormatSettings", (Rules,), ("changes",)),
    SettingsType("_FileSettings", "_ChangeSettings", (StreamSettings,), ("read",)),
)
_TYPE_OF = {function: settings.name for settings in TYPES for function in settings.functions}


def library_stub() -> str:
    """Return the text of `eventlog/__init__.pyi`."""
    homes = {
        name: eventlog.__getattr__(name).__module__
        for name in dir(eventlog)
        if name not in ("ABSENT", "__version__")
    } | {"ABSENT": "eventlog.core.change"}
    offered = sorted((home, name) for name, home in homes.items() if name not in _TYPE_OF)
    imports = [f"from {home} import {name} as {name}" for home, name in offered]
    imports.append("from eventlog.library import Description, FileName, OnRefused, Rows")
    lines = [
        _HEAD,
        "from collections.abc import Iterable, Iterator, Mapping",
        "from typing import Literal, TypedDict, Unpack",
        "",
        *sorted(imports, key=lambda line: (line.split()[1], " as " in line)),
        "",
        "__version__: str",
        "",
        f"_FormatName = Literal[{', '.join(map(json.dumps, FORMATS))}]",
    ]
    names: dict[str, set[str]] = {}
    for settings in TYPES:
        inherited = names.get(settings.base, set())
        fields = list(_fields(settings, inherited))
        names[settings.name] = inherited | {name for name, _ in fields}
        lines += ["", f"class {settings.name}({settings.base}, total=False):"]
        lines += (line for name, declarations in fields for line in _field(name, declarations))
    for name in sorted(_TYPE_OF):
        lines += ["", *_function(name)]
    return "\n".join(lines) + "\n"


def _fields(settings: SettingsType, inherited: set[str]) -> Iterator[tuple[str, list[Field[Any]]]]:
    """Yield the settings by name, each with its declarations; those that are inherited are left out."""
    fields = [field for kind in settings.declaring for field in declared(kind)]
    for name, same in groupby(sorted(fields, key=lambda field: field.name), lambda field: field.name):
        if name not in inherited and name not in settings.without:
            yield name, list(same)


def _field(name: str, declarations: list[Field[Any]]) -> Iterator[str]:
    first = declarations[0]
    kind = str(first.type).removesuffix(" | None")
    if kind.startswith("tuple"):
        kind = "list[str] | tuple[str, ...] | set[str] | str"
    elif choices := first.metadata["choices"]:
        kind = f"Literal[{', '.join(choices if kind == 'int' else map(json.dumps, choices))}]"
    yield f"    {name}: {kind} | None"
    help_lines = wrap(first.metadata["help"].replace("\\", "\\\\"), _WIDTH - 4)
    yield from (f"    {line}" for line in f'"""{chr(10).join(help_lines)}"""'.split("\n"))


def _function(name: str) -> Iterator[str]:
    """Yield the lines of a function whose settings have types."""
    function = getattr(library, name)
    signature = inspect.signature(function)
    yield f"def {name}("
    is_open = True  # for parameters by position
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and is_open:
            yield "    *,"
            is_open = False
        if parameter.kind is parameter.VAR_KEYWORD:
            yield f"    **{parameter.name}: Unpack[{_TYPE_OF[name]}],"
            continue
        default = "" if parameter.default is parameter.empty else f" = {_written(parameter.default)}"
        annotation = "_FormatName" if parameter.name in _OF_FORMATS else parameter.annotation
        yield f"    {parameter.name}: {annotation}{default},"
    yield f") -> {signature.return_annotation}:"
    summary, *_ = str(inspect.getdoc(function)).splitlines()
    yield f'    """{summary}"""'


def _written(default: object) -> str:
    return json.dumps(default) if isinstance(default, str) else repr(default)
