"""Every refusal of a table, word for word, without any database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eventlog.sql.capture.refusals import LIMITS, REFUSALS, CannotTrack, raise_refusals
from eventlog.sql.relation import Choice, Identity, Installed
from eventlog.sql.trigger_rows import Subject
from tests.sql.oracle_subjects import subject_of, wide
from tests.sql.samples import subject

pytestmark = pytest.mark.quick

CHILD = ("usr_phone.phoneno",)
ROW_TRIGGER = (Installed("f", row=True),)
PARTITION = (("indirect", "p1"),)
BOTH = "and a statement on one changes rows of both while it fires the triggers of one"


def usr(dialect: str = "postgresql", choice: Choice | None = None, **changes: object) -> Subject:
    """Return a table of the samples whose relation was changed."""
    sample = subject(dialect, choice or Choice())
    return replace(sample, relation=replace(sample.relation, **changes))  # type: ignore[arg-type]


def table(**changes: object) -> Subject:
    """Return a table of the samples that was changed itself."""
    return usr(table=replace(subject("postgresql", Choice()).table, **changes))  # type: ignore[arg-type]


def keyed_by(kind: str) -> Subject:
    sample = subject_of([("F", kind)], Choice())
    return replace(sample, relation=replace(sample.relation, table=replace(sample.table, key=("F",))))


def cascading(sample: Subject) -> Subject:
    children = (replace(child, link=replace(child.link, on_delete="cascade")) for child in sample.children)
    return replace(sample, children=tuple(children))


REFUSED = {
    ("_family", "partition"): (
        usr(family=(("indirect.p", "partition"),)),
        "it is a partition of indirect.p: track indirect.p, which covers all of its partitions",
    ),
    ("_family", "parent"): (
        usr(family=(("indirect.p", "parent"),)),
        f"it inherits from indirect.p, {BOTH}: make them partitions, or log by hand",
    ),
    ("_family", "child"): (
        usr(family=(("indirect.c", "child"),)),
        f"it has a table that inherits from it, indirect.c, {BOTH}: make them partitions, or log by hand",
    ),
    ("_table", "no_table"): (
        usr(identity=Identity("view")),
        (
            "it is a view: log its changes from triggers of your own with eventlog_event "
            "(docs/log/triggers.md has an example on a view)"
        ),
    ),
    ("_table", "of_log"): (
        table(name="eventlog_notice"),
        "it belongs to the log: each row of its own would log another",
    ),
    ("_table", "unheard"): (
        usr("mysql", Choice(replicated=True)),
        (
            "no trigger of MySQL logs what replication writes: leave out --replicated, and track the table"
            " where it is replicated from"
        ),
    ),
    ("_table", "no_key"): (
        table(key=()),
        (
            "it has no primary key to name its rows by: add one (docs/log/keys.md has the statements), or"
            " track the table that its foreign key points to with --child"
        ),
    ),
    ("_key_names", "illegal"): (
        table(key=("a=b",), columns={"a=b": subject("postgresql", Choice()).table.columns["idu"]}),
        "key column a=b holds one of , ; ' + \" = \\ < >, which a key cannot name: rename it",
    ),
    ("_quoted_names", "unquotable"): (
        usr("mysql", table=replace(subject("mysql", Choice()).table, name="a`b")),
        "no trigger of MySQL can name a`b, which holds `: rename it, or leave a column out with --without",
    ),
    ("_key_types", "why"): (
        keyed_by("BFILE"),
        "key column F is of type BFILE, which is kept in a file outside the database: give it another key",
    ),
    ("_logged_columns", "unknown"): (
        usr(choice=Choice(columns=("mail",))),
        "it has no column mail: --columns and --without take names from idu, site, born, photo, amount, bio",
    ),
    ("_logged_columns", "computed"): (
        usr(choice=Choice(columns=("bio",)), virtual=("bio",)),
        "column bio is computed when it is read, so triggers cannot log it: leave it out",
    ),
    ("_logged_columns", "only_key"): (
        usr(choice=Choice(insert=1, without=("born", "photo", "amount", "bio"))),
        "no column except its key is logged, so --insert 1 would log nothing: choose --insert 5",
    ),
    ("_named_types", "unreadable"): (
        subject_of([("F", "BFILE"), ("N", "DATE")], Choice(insert=1, columns=("F", "N"))),
        "column F is of type BFILE, which is kept in a file outside the database: leave it out",
    ),
    ("_broken_names", "broken"): (
        subject_of([("a\n/", "DATE")], Choice()),
        "the name 'a\\n/' holds a line end or another control character: rename it",
    ),
    ("_children", "incomplete"): (
        usr(choice=Choice(update=3, children=CHILD)),
        (
            "an event of type 3 removes all values of a child column to add one: choose --update 2, or 8,"
            " which reads them all"
        ),
    ),
    ("_children", "cascades"): (
        cascading(usr("oracle", Choice(update=2, children=CHILD))),
        (
            "rows of INDIRECT.USR_PHONE go with their parent by a cascade, in which Oracle lets no trigger"
            " see whether the parent is gone: choose --update 8"
        ),
    ),
    ("_partitions", "late"): (
        usr(choice=Choice(update=2), below=PARTITION, triggers=ROW_TRIGGER),
        (
            "it is partitioned and has row-level triggers (f), before which capture cannot come: choose"
            " --insert 5 --update 6, which read the row later"
        ),
    ),
    ("_partitions", "row"): (
        usr(choice=Choice(granularity="row"), below=PARTITION),
        "it is partitioned, which rules out --granularity row: choose statement",
    ),
    ("_sizes", "too_large"): (
        wide(200, 30, Choice(insert=1, update=2)),
        "choose --insert 5 --update 6, which need fewer lines, or leave columns out with --without",
    ),
}


def test_every_refusal_has_its_case() -> None:
    assert {(check.look.__name__, check.condition) for check in (*REFUSALS, *LIMITS)} == REFUSED.keys()


@pytest.mark.parametrize("refusal", REFUSED, ids=" ".join)
def test_a_refusal_names_the_reason_and_the_way_out(refusal: tuple[str, str]) -> None:
    refused, reason = REFUSED[refusal]
    with pytest.raises(CannotTrack) as raised:
        raise_refusals(refused)
    assert str(raised.value).endswith(reason)
    assert str(raised.value).startswith(f"{refused.table} cannot be tracked: ")
