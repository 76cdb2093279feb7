"""The text of triggers, byte for byte, as a DBA reads it before it runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eventlog.sql.dialects import DIALECTS
from eventlog.sql.relation import MARK, Choice, IllegalChoice, read_choice
from eventlog.sql.trigger_rows import routines, triggers_of
from tests.sql.samples import subject

pytestmark = pytest.mark.quick

GOLDEN = Path(__file__).parents[1] / "golden" / "triggers"
CHOICES = {
    "rows": Choice(),
    "fields": Choice(insert=1, update=2, children=("usr_phone.phoneno",)),
    "fields-query-back": Choice(insert=7, update=8, delete=None, without=("bio", "BIO")),
}


def script(dialect: str, choice: Choice) -> str:
    """Return everything that `track` would run, for the database's own client."""
    of = subject(dialect, choice)
    creates = [statement for trigger in triggers_of(of) for statement in trigger.create]
    return DIALECTS[dialect].script([*routines(of.log), *creates])


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_text_is_what_it_was(dialect: str, name: str) -> None:
    """Compare with the golden files. EVENTLOG_WRITE_GOLDEN=1 writes them anew; read the difference first."""
    written = script(dialect, CHOICES[name])
    file = GOLDEN / f"{dialect}-{name}.sql"
    if os.environ.get("EVENTLOG_WRITE_GOLDEN"):
        file.write_text(written, encoding="utf-8")
    assert written == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "choice",
    [*CHOICES.values(), Choice(columns=("a'b", "c*/d", "é", '"', "\\"), granularity="row", delete=None)],
)
def test_a_choice_is_read_back_from_its_mark(choice: Choice) -> None:
    mark = choice.mark()
    assert read_choice(f"{mark.removeprefix(MARK)}\n  null;") == choice
    assert "'" not in mark
    assert "\n" not in mark


@pytest.mark.parametrize("text", ["", "{", '{"x": 1}', "[]"])
def test_what_is_no_choice_is_refused(text: str) -> None:
    with pytest.raises(IllegalChoice):
        read_choice(text)
