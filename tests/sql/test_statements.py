"""The .sql files: every statement has a name and a purpose, and a name means the same in every database."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from eventlog.sql.common.templates import read
from eventlog.sql.dialects import DIALECTS

pytestmark = pytest.mark.quick

BIND = re.compile(r"(?<![\w:]):([a-z_]\w*)(?![\w.])")  # a row of a trigger has a dot after its name
NO_BIND = re.compile(r"'[^'\n]*'|--[^\n]*")  # constants and comments
PIECES = {
    "{among_ids}": ":ids",
    "{of_ids}": ":ids",
    "{wanted_ids}": ":ids",
    "{key_arrays}": ":keys",
    "{first_rows}": ":most",
    "{next_rows}": ":most :skip",
}
FOLDERS = sorted({folder for dialect in DIALECTS.values() for folder in dialect.folders})


def binds(folder: str, name: str) -> set[str]:
    """Return the values that a statement is given."""
    text = NO_BIND.sub("", "\n".join(read(folder)[name]))
    for piece, instead in PIECES.items():
        text = text.replace(piece, instead)
    return set(BIND.findall(text))


@pytest.mark.parametrize("name", sorted({name for folder in FOLDERS for name in read(folder)}))
def test_a_name_is_given_the_same_values_everywhere(name: str) -> None:
    first, *others = (binds(folder, name) for folder in FOLDERS if read(folder).get(name))
    assert all(other == first for other in others)


def test_a_statement_of_the_common_folder_is_for_some_database() -> None:
    for name in read("common"):
        assert any(name not in read(dialect.folders[0]) for dialect in DIALECTS.values()), name


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("-- a --\n-- One.\nselect 1\n\n-- a --\n-- Another.\nselect 2\n", "a is there twice"),
        ("-- a --\nselect 1\n", "a has no purpose"),
        ("select 1\n", "'select 1' is under no name"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "log.sql").write_text(text)
    with pytest.raises(LookupError, match=fault):
        read(str(tmp_path))


def test_a_name_stands_in_one_file_of_a_folder(tmp_path: Path) -> None:
    for file in ("one.sql", "two.sql"):
        (tmp_path / file).write_text("-- a --\n-- One.\nselect 1\n")
    with pytest.raises(LookupError, match="a is there twice"):
        read(str(tmp_path))


def test_several_statements_of_a_name_are_ended_by_a_slash(tmp_path: Path) -> None:
    (tmp_path / "log.sql").write_text("-- a --\n-- Two.\nselect 1\n/\n-- not a name\nselect 2\n/\n")
    assert read(str(tmp_path)) == {"a": ("select 1", "-- not a name\nselect 2")}


def test_a_field_of_a_dialect_differs_somewhere() -> None:
    for record in ("sessions", "names", "values", "schema", "statements"):
        first, *others = (getattr(dialect, record) for dialect in DIALECTS.values())
        for field in fields(first):
            value = getattr(first, field.name)
            assert any(getattr(other, field.name) != value for other in others), f"{record}.{field.name}"
