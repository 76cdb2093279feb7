"""Oracle's triggers without an Oracle: every statement parses, and what they note runs on MariaDB."""

from __future__ import annotations

import re
import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import sqlfluff

from eventlog.sql.choice import Choice
from eventlog.sql.triggers import routines
from eventlog.sql.writers import WRITERS
from tests.sql.samples import subject
from tests.sql.test_trigger_texts import CHOICES


def statements() -> dict[str, str]:
    texts = {}
    for name, choice in CHOICES.items():
        of = subject("oracle", choice)
        for trigger in WRITERS["oracle"].write(of):
            for number, statement in enumerate(trigger.create):
                texts[f"{name} {trigger.name} {number}"] = statement
    for number, statement in enumerate(routines(subject("oracle", Choice()).log)):
        texts[f"routine {number}"] = statement
    return texts


STATEMENTS = statements()


# Oracle takes a field of a collection's element among the values of forall since 11g; sqlfluff does not know
UNKNOWN_TO_SQLFLUFF = (re.compile(r"\bnoted\(i\)\.\w+"), "noted(i)")


@pytest.mark.parametrize("name", STATEMENTS)
def test_sqlfluff_parses_the_statement(name: str) -> None:
    pattern, simpler = UNKNOWN_TO_SQLFLUFF
    sqlfluff.parse(pattern.sub(simpler, STATEMENTS[name]) + "\n/\n", dialect="oracle")
