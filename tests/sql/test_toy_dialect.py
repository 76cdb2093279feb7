"""A new dialect is one folder and one line: the example of docs/architecture.md, tried."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from eventlog.sql import dialects
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.relation import Choice
from eventlog.sql.schema.migrate import install_script
from eventlog.sql.trigger_rows import triggers_of
from tests.sql.samples import subject

pytestmark = pytest.mark.quick

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
PENDING = """-- create_pending --
-- Makes the index of pending rows.
create index if not exists {log_pending} on {log} ({status})
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dialect:
    """The dialect of the page, with a folder of its own."""
    section = PAGE.read_text("utf-8").partition("## Adding a dialect")[2]
    example = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert example is not None
    names: dict[str, Dialect] = {}
    exec(example[1], names)
    (tmp_path / "schema.sql").write_text(PENDING)
    dialect = replace(names["TOY"], folders=(str(tmp_path), *names["TOY"].folders[1:]))
    monkeypatch.setitem(dialects.DIALECTS, "toy", dialect)
    monkeypatch.setitem(dialects.SCHEMES, "toy", dialect)
    return dialect


def test_it_has_its_own_statement_and_those_of_the_others(toy: Dialect) -> None:
    theirs = install_script(Log(POSTGRESQL)).splitlines()
    ours = install_script(Log(dialects.dialect_named("toy"))).splitlines()
    changed = [line for line in ours if line not in theirs]
    assert changed == ['create index if not exists "eventlog_pending" on "eventlog" ("status");']


def test_its_triggers_are_written(toy: Dialect) -> None:
    theirs = subject("postgresql", Choice())
    ours = replace(theirs, log=replace(theirs.log, dialect=toy))
    written = list(triggers_of(ours))
    assert written == list(triggers_of(theirs))
    assert written


def test_a_word_of_the_schema_is_its_own(toy: Dialect) -> None:
    words = {**toy.schema_words, "type_long": "longer"}
    assert "cycle_facts longer," in install_script(Log(replace(toy, schema_words=words)))
