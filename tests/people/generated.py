"""Texts that follow from the program and the golden cases: `python -m tests.people.generated` writes them.

test_generated.py holds what stands in the repository equal to what is made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from eventlog.cli import COMMANDS, cli
from eventlog.original.parameters import PARAMETERS, Parameter
from eventlog.original.unneeded import UNNEEDED, Unneeded
from eventlog.xds.documents import indent

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests" / "golden" / "events").glob("[1-8]-*.txt"))
BEGIN, END = "<!-- made by tests/people/generated.py: {} -->", "<!-- until here -->"


def event_types() -> str:
    """An example of each event type, as its golden case has it."""
    return "\n".join(line for case in CASES for line in _event_type(case))


def commands() -> str:
    """The help of every command."""
    parts = []
    for name in COMMANDS:
        context = context_of(name)
        text = context.command.get_help(context)
        parts.append(f"## {name}\n\n```text\n{_stripped(text)}\n```\n")
    return "\n".join(parts)


def context_of(name: str) -> click.Context:
    """A command as the program calls it; click keeps the help option of the first context that asks."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return click.Context(command, info_name=f"eventlog {name}", terminal_width=78, **cli.context_settings)


def parameters() -> str:
    """The original's parameters beside our settings, and those that become no setting."""
    lines = ["| original (display name) | ours | default | differences |", "|---|---|---|---|"]
    for known in PARAMETERS:
        ours = known.ours or known.tag
        lines.append(f"| `{known.tag}` ({_displayed(known)}) | `{ours}` | {known.default} | {known.note} |")
    lines += ["", "These become no setting:", ""]
    lines += ["| original (display name) | because |", "|---|---|"]
    lines += (f"| `{known.tag}` ({_displayed(known)}) | {known.reason} |" for known in UNNEEDED)
    return "\n".join(lines) + "\n"


def _displayed(known: Parameter | Unneeded) -> str:
    return ", ".join(f"*{name}*" for name in known.display)


def _event_type(case: Path) -> Iterator[str]:
    intro, *rest = re.split(r"^--- (.*)\n", case.read_text(), flags=re.MULTILINE)
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    title, _, told = intro.strip().partition(": ")
    yield f"## {title}\n"
    yield f"{told[:1].upper()}{told[1:]}\n"
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


def _page(path: str, name: str, make: Callable[[], str]) -> tuple[Path, Callable[[], str]]:
    """A page of which the part between the marks is made."""
    page = ROOT / path

    def whole() -> str:
        before, mark, rest = page.read_text("utf-8").partition(BEGIN.format(name))
        _, end, after = rest.partition(END)
        assert mark, f"{path} lacks {BEGIN.format(name)}"
        assert end, f"{path} lacks {END}"
        return f"{before}{mark}\n\n{make()}\n{end}{after}"

    return page, whole


GENERATED: dict[Path, Callable[[], str]] = dict(
    (
        _page("docs/event-types.md", "event types", event_types),
        _page("docs/commands.md", "commands", commands),
        _page("docs/moving.md", "parameters", parameters),
    )
)

if __name__ == "__main__":
    for path, make in GENERATED.items():
        path.write_text(make(), encoding="utf-8")
