"""Texts that follow from the program and the golden cases: `python -m tests.project.generated` writes them.

test_generated.py compares the files of the repository with the texts from here.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from string import Formatter
from textwrap import dedent
from typing import NamedTuple

import click

from eventlog.cli import COMMANDS, cli
from eventlog.netiq.parameters import PARAMETERS, UNNEEDED, Parameter, Unneeded
from eventlog.sql.common import dialect as records
from eventlog.sql.common import naming
from eventlog.sql.common.templates import read
from eventlog.sql.dialects import DIALECTS
from eventlog.xds.documents import indent
from tests.project.library_stub import library_stub

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests" / "golden" / "events").glob("[1-8]-*.txt"))
SOURCES = (ROOT / "eventlog", ROOT / "spark" / "eventlog_spark")
# The rooms whose classes have messages, in the order of docs/reference/errors.md.
ROOMS = {
    "core": "Rows, values, tables and settings",
    "cli": "Commands",
    "fold": "Rows of a log",
    "publisher": "Publisher",
    "slot": "Slot",
    "opening": "Settings and tables of a log",
    "sql": "Log and database",
    "operate": "Care of a log",
    "audit": "Audit",
    "netiq": "Settings of the original",
    "sinks": "Sinks",
    "web": "Status page and receiver",
    "xds": "Documents",
    "transfer": "Converting",
    "transfer.log_files": "Logs in files",
    "files": "Files",
    "transfer.sources": "Topics, tables and captures",
    "transfer.targets": "Apply",
    "transactions": "Runs with a state",
    "formats.qlik": "Qlik",
    "formats.gbase": "GBase and Informix",
    "compare": "Comparing",
    "eventlog_spark": "Spark",
    "library": "Library",
    "cli.demo": "Demo",
    "embedded": "Embedded server",
    "java": "Java",
    "clients": "HTTP and topics",
}
_CLASS = re.compile(r'^class (\w+)\((\w+)\):\n    """(.*?)"""', re.MULTILINE | re.DOTALL)
BEGIN, END = "<!-- made by tests/project/generated.py: {} -->", "<!-- until here -->"


def alert_rules() -> str:
    """Return the alert rules that a page prints."""
    return f"```yaml\n{(ROOT / 'examples' / 'monitoring' / 'alerts.yaml').read_text('utf-8')}```\n"


def event_types() -> str:
    """Return an example of each event type, as its golden case has it."""
    return "\n".join(line for case in CASES for line in _event_type(case))


class ListedOption(NamedTuple):
    """An option as a help lists it: under which heading, its names, and what it is for."""

    heading: str
    names: str
    meaning: str

    @property
    def row(self) -> str:
        """Return the cells of the option in a table."""
        meaning = re.sub(r"([*_|\[])", r"\\\1", self.meaning.replace("<", "&lt;"))
        return f"| `{self.names.replace('|', ', ')}` | {meaning} |"


def commands() -> str:
    """Return a line for each command, with its page."""
    lines = ["| command | does |", "|---|---|"]
    for name in COMMANDS:
        (does, *_) = context_of(name).command.get_short_help_str(200).split("\n")
        lines.append(f"| [`{name}`](../commands/{name}.md) | {does} |")
    return "\n".join(lines) + "\n"


def command(name: str) -> str:
    """Return the page of a command: its usage, its own options, and the names of those that it shares."""
    context = context_of(name)
    formatter = context.make_formatter()
    context.command.format_usage(context, formatter)
    context.command.format_help_text(context, formatter)
    parts = [f"# {name}\n\n```text\n{_stripped(formatter.getvalue())}\n```\n"]
    only_here, shared = list[ListedOption](), dict[str, list[str]]()
    for option in options_of(name):
        if option in _shared():
            shared.setdefault(option.heading, []).append(f"`{option.names.split()[0].rstrip(',')}`")
        else:
            only_here.append(option)
    parts += _tables(only_here, "## {}")
    lines = (f"- {heading or 'Options'}: {', '.join(names)}\n" for heading, names in shared.items())
    parts.append(f"## Shared with other commands\n\n[Explained here](options.md):\n\n{''.join(lines)}")
    formatter = context.make_formatter()
    context.command.format_epilog(context, formatter)
    if examples := dedent(_stripped(formatter.getvalue())).strip().removeprefix("Examples:"):
        parts.append(f"## Examples\n\n```text\n{dedent(examples).strip()}\n```\n")
    return "\n".join(parts)


def shared_options() -> str:
    """Return the options that several commands have, each once, with the commands of each group."""
    parts = _tables(sorted(_shared(), key=lambda option: option.heading), "## {}")
    return "# Shared options\n\nMore than one command has each of these.\n\n" + "\n".join(parts)


def options_of(name: str) -> list[ListedOption]:
    """Return the options of a command, in the order of its help."""
    context = context_of(name)
    listed = ((option, option.get_help_record(context)) for option in context.command.get_params(context))
    return [
        ListedOption(getattr(option, "heading", "") or "", *record)
        for option, record in listed
        if record is not None and isinstance(option, click.Option)
    ]


@cache
def _shared() -> Sequence[ListedOption]:
    """Return the options that several commands have, those of most commands first."""
    counts = Counter(option for name in COMMANDS for option in options_of(name))
    return [option for option, count in counts.most_common() if count > 1]


def _tables(options: Iterable[ListedOption], title: str) -> list[str]:
    """Return a table of the options under each heading."""
    by_heading: dict[str, list[str]] = {}
    for option in options:
        by_heading.setdefault(option.heading, []).append(option.row)
    return [
        "\n".join((title.format(heading or "Options"), "", "| option | meaning |", "|---|---|", *rows, ""))
        for heading, rows in by_heading.items()
    ]


def context_of(name: str) -> click.Context:
    """Return a command as the program calls it; click keeps the help option of the first context
    that asks.
    """
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return click.Context(command, info_name=f"eventlog {name}", terminal_width=78, **cli.context_settings)


def parameters() -> str:
    """Return the original's parameters with our settings, and those that become no setting."""
    lines = ["| original (display name) | ours | default | differences |", "|---|---|---|---|"]
    for parameter in PARAMETERS:
        first = f"`{parameter.tag}` ({_displayed(parameter)}) | `{parameter.setting}`"
        lines.append(f"| {first} | {parameter.default} | {parameter.note} |")
    lines += ["", "These become no setting:", ""]
    lines += ["| original (display name) | because |", "|---|---|"]
    lines += (
        f"| `{parameter.tag}` ({_displayed(parameter)}) | {parameter.reason} |" for parameter in UNNEEDED
    )
    return "\n".join(lines) + "\n"


class Message(NamedTuple):
    """A class of errors and its message, with … for names and values."""

    room: str
    path: str  # of the class
    text: str


def errors() -> str:
    """Return the messages of all classes of errors, room by room, each with its class."""
    messages = sorted(_messages(), key=lambda message: message.text.lower())
    parts = []
    for room in dict.fromkeys((*ROOMS, *(message.room for message in messages))):
        rows = (f"| `` {m.text} `` | `{m.path}` |" for m in messages if m.room == room and m.text != "…")
        parts.append("\n".join((f"## {ROOMS[room]}\n", "| message | class |", "|---|---|", *rows, "")))
    free = "\n".join(sorted(f"- `{message.path}`" for message in messages if message.text == "…"))
    parts.append(
        "## Classes without a message of their own\n\nTheir message is written where they are raised.\n\n"
        f"{free}\n"
    )
    return "\n".join(parts)


def dialect_records() -> str:
    """Return a table of the fields of each record of a dialect."""
    parts = []
    for record in _RECORDS:
        fields = _FIELD.findall(inspect.getsource(record))
        rows = (
            f"| `{name}` | {_DEFAULT.get(default, f'`` {default} ``')} | {meaning} |"
            for name, default, meaning in fields
        )
        head = (f"**{record.__name__}**\n", "| field | default | meaning |", "|---|---|---|")
        parts.append("\n".join((*head, *rows, "")))
    return "\n".join(parts)


def dialect_statements() -> str:
    """Return which statements a database must give, which common ones are stated anew, and where."""
    common, bare = read("common"), [read(name) for name in _BARE]
    folders = {name: read(name) for name in DIALECTS}
    must = sorted(name for name in bare[0] if name not in common and all(name in texts for texts in bare))
    titles = {
        name: [DIALECTS[folder].title for folder in folders if name in folders[folder]]
        for name in sorted(common)
    }
    rows = (f"| `{name}` | {', '.join(anew)} |" for name, anew in titles.items() if anew)
    lines = (
        f"A database must give these {len(must)}; `eventlog/sql/mysql/` has each with its purpose:\n",
        f"```text\n{textwrap.fill(' '.join(must), 100)}\n```\n",
        f"None of the {len(common)} common ones must be stated anew. Some do it, for speed or for a word:\n",
        "| statement | stated anew by |",
        "|---|---|",
        *rows,
        "",
    )
    return "\n".join(lines)


_RECORDS = (
    records.Sessions,
    naming.Names,
    records.Values,
    records.TriggerWriter,
    records.LogSchema,
    records.Statements,
)
_BARE = ("mysql", "oracle")  # they have no field of Statements that asks for statements of its own
_FIELD = re.compile(r"^    (\w+): .*?(?: = (.*?))?(?:  # (.*))?$", re.MULTILINE)
_DEFAULT = {
    "": "must be given",
    "field(default_factory=dict)": "none",
    "frozenset()": "none",
    "()": "none",
    '""': "empty",
}


def _messages() -> list[Message]:
    """Return the messages of EventlogError's subclasses; names of classes are unique."""
    classes_by_name = {}
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            module = ".".join(path.relative_to(source.parent).with_suffix("").parts)
            for name, base, text in _CLASS.findall(path.read_text("utf-8")):
                classes_by_name[name] = base, module, text
    return [
        Message(_room(module), f"{module}.{name}", _with_gaps(text))
        for name, (_, module, text) in classes_by_name.items()
        if _is_error(name, {name: base for name, (base, _, _) in classes_by_name.items()})
    ]


def _is_error(name: str, bases: dict[str, str]) -> bool:
    base = bases.get(name)
    return base == "EventlogError" or (base is not None and _is_error(base, bases))


def _room(module: str) -> str:
    package, *path = module.split(".")
    rooms = (".".join(path[:length]) for length in (2, 1))
    return next((room for room in rooms if room in ROOMS), package)


def _with_gaps(template: str) -> str:
    """Return the template of a docstring's source on one line, with … for each field."""
    parts = Formatter().parse(" ".join(literal_eval(f'"""{template}"""').split()))
    return "".join(text + ("" if field is None else "…") for text, field, _, _ in parts)


def _displayed(parameter: Parameter | Unneeded) -> str:
    return ", ".join(f"*{name}*" for name in parameter.display.split(", "))


def _event_type(case: Path) -> Iterator[str]:
    intro, *sections = re.split(r"^--- (.*)\n", case.read_text(), flags=re.MULTILINE)
    parts = dict(zip(sections[::2], sections[1::2], strict=True))
    title, _, reported = intro.strip().partition(": ")
    yield f"## {title}\n"
    yield f"{reported[:1].upper()}{reported[1:]}\n"
    yield "Rows of the log:\n"
    yield f"```text\n{parts['log'].rstrip()}\n```\n"
    for name, text in parts.items():
        if name.startswith("current "):
            yield f"The rows of {name.removeprefix('current ')} as they are now:\n"
            yield f"```text\n{text.rstrip()}\n```\n"
        if name.startswith("documents"):
            yield f"What leaves{name.removeprefix('documents')}:\n"
            shown = "\n".join(indent(line) for line in text.splitlines())
            yield f"```xml\n{shown}\n```\n"


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


def _page(path: str, **parts: Callable[[], str]) -> tuple[Path, Callable[[], str]]:
    """Return a page whose parts between the marks are made."""
    page = ROOT / path

    def render() -> str:
        text = page.read_text("utf-8")
        for name, make in parts.items():
            begin = BEGIN.format(name.replace("_", " "))
            before, mark, after_mark = text.partition(begin)
            _, end, after = after_mark.partition(END)
            assert mark, f"{path} lacks {begin}"
            assert end, f"{path} lacks {END}"
            text = f"{before}{mark}\n\n{make()}\n{end}{after}"
        return text

    return page, render


GENERATED: dict[Path, Callable[[], str]] = dict(
    (
        _page("docs/log/event-types.md", event_types=event_types),
        _page("docs/log/moving.md", parameters=parameters),
        _page("docs/run/night.md", alert_rules=alert_rules),
        _page("docs/reference/commands.md", commands=commands),
        _page("docs/reference/errors.md", errors=errors),
        _page(
            "docs/contribute/dialects.md",
            records_of_a_dialect=dialect_records,
            statements_of_a_dialect=dialect_statements,
        ),
    )
)
COMMAND_PAGES = ROOT / "docs" / "commands"
GENERATED |= {COMMAND_PAGES / f"{name}.md": partial(command, name) for name in COMMANDS}
GENERATED[COMMAND_PAGES / "options.md"] = shared_options
GENERATED[ROOT / "eventlog" / "__init__.pyi"] = library_stub

if __name__ == "__main__":
    for path, make in GENERATED.items():
        path.write_text(make(), encoding="utf-8")
