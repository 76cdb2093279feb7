"""The option --task: the name of a task, and the inputs that are of it."""

from __future__ import annotations

from typing import Any

import click

from eventlog.core.errors import Misuse
from eventlog.core.settings import variable

Tasks = tuple[tuple[str, tuple[str, ...]], ...]


class _Name(click.types.StringParamType):
    name = "text"

    def split_envvar_value(self, rv: str) -> list[str]:
        return [rv]  # a name may have blanks in it


def task_option(command: Any) -> Any:
    """Return the option, which may be given more than once."""
    return click.option(
        "--task",
        type=_Name(),
        multiple=True,
        metavar="NAME[=INPUT]",
        envvar=variable("task"),
        help="the task that is written; with =INPUT, a task that is read and one of its inputs",
    )(command)


def read_tasks(given: tuple[str, ...]) -> tuple[str | None, Tasks]:
    """Return the name of the task that is written, and the inputs of those that are read."""
    names = [text for text in given if "=" not in text]
    if len(names) > 1:
        raise Misuse(f"--task: {names[0]} and {names[1]} are both to be the task that is written")
    inputs: dict[str, list[str]] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if equals and not (name and file):
            raise Misuse(f"--task {text}: NAME=INPUT names a task and an input of it")
        if equals:
            inputs.setdefault(name, []).append(file)
    return names[0] if names else None, tuple((name, tuple(files)) for name, files in inputs.items())
