"""Oracle's triggers and packages without an Oracle: every statement parses, whatever its types, keeps the
limits that Oracle documents, whatever its width, and leaves no name to chance."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import sqlfluff

from eventlog.sql.capture.refusals import CannotTrack, raise_refusals
from eventlog.sql.capture.subject import trigger_names
from eventlog.sql.capture.track_record import write_record
from eventlog.sql.current_rows import _current_holes
from eventlog.sql.names import Log
from eventlog.sql.oracle import ORACLE
from eventlog.sql.queries import Queries
from eventlog.sql.readable import ReadableTable
from eventlog.sql.relation import Choice, Relation
from eventlog.sql.trigger_rows import Subject, Trigger, routines, triggers_of
from tests.sql.oracle_subjects import CHOICES, LEFT_OUT, TYPES, every_type, subject_of, table_of, wide
from tests.sql.samples import subject
from tests.sql.test_trigger_texts import CHOICES as SAMPLES

pytestmark = pytest.mark.quick

# Oracle knows them, sqlfluff does not: a type of another schema's package, a package's constant with the name
# of a keyword, and a function of the query's own
UNKNOWN_TO_SQLFLUFF = {
    r'"[^"]+"\.("[^"]+"\.entries)': r"\1",
    r"dbms_lob\.session": "dbms_lob.call",
    r"xmlserialize\(content ([\w.\"]+) as clob\)": r"xmlserialize(\1)",
    r"json_serialize\(([\w.\"]+) returning clob\)": r"json_serialize(\1)",
    r"from_vector\(([\w.\"]+) returning clob\)": r"from_vector(\1)",
    r"case when ([\w.\"]+) then 'true' when not \1 then": r"case when \1 = 1 then 'true' when \1 = 0 then",
}


def write(of: Subject) -> list[Trigger]:
    return list(triggers_of(of))


def parse(statement: str, end: str = "\n/") -> None:
    for pattern, simpler in UNKNOWN_TO_SQLFLUFF.items():
        statement = re.sub(pattern, simpler, statement)
    sqlfluff.parse(f"{statement}{end}\n", dialect="oracle")


def statements() -> Iterator[tuple[str, str]]:
    for name, choice in SAMPLES.items():
        for trigger in write(subject("oracle", choice)):
            for number, statement in enumerate(trigger.create):
                yield f"{name} {trigger.name} {number}", statement
    for name, choice in CHOICES.items():
        for trigger in write(every_type(choice, "ELSEWHERE")):
            head, body, *_, created, _ = trigger.create
            yield from {f"every type, head, {name}": head, f"every type, {name}": created}.items()
    before, *routines_of_types = body.split("\n\n  function text")
    yield "every type, body", f"{before}\nend;"
    for number, text in enumerate(routines_of_types, 1):
        ended = text.removesuffix("\nend;")
        yield f"type {number}", f"create or replace package body p is\n  function text{ended}\nend;"
    for file in ("routines", "drop_routines"):
        for number, statement in enumerate(routines(subject("oracle", Choice()).log, file)):
            yield f"{file} {number}", statement


STATEMENTS = dict(statements())


@pytest.mark.long
@pytest.mark.parametrize("name", STATEMENTS)
def test_sqlfluff_parses_the_statement(name: str) -> None:
    parse(STATEMENTS[name])


def query_back(columns: tuple[str, ...]) -> str:
    """Return the query-back of a table with a column of each type."""
    table = table_of({"K": "RAW(16)", **{f"C{n}": kind for n, kind in enumerate(columns)}}, ("K",))
    queries = Queries(Log(ORACLE))
    return str(queries.clause("current", **_current_holes(ReadableTable(table, ORACLE))))


@pytest.mark.long
def test_a_query_back_of_every_type_parses() -> None:
    functions, begins, query = query_back((*TYPES, *LEFT_OUT)).partition("select /*+")
    parse(begins + query, end="")
    head, _, function = functions.partition("\n")
    assert head == "with"
    parse(f"create or replace {function.rstrip()}")


@pytest.mark.parametrize("kind", [*TYPES, *LEFT_OUT])
def test_no_expression_is_empty(kind: str) -> None:
    """A type has a text in triggers and query-backs, or is in neither."""
    text = query_back((kind,))
    assert not re.search(r",\s*(,|from\s)", text)
    assert ('t."C0"' in text) == (kind in TYPES)
    (trigger,) = write(subject_of([("C0", kind)], Choice(insert=5, update=6)))
    assert (':new."C0"' in trigger.body) == (kind in TYPES)
    assert ("updating('C0')" in trigger.body) == (kind in LEFT_OUT)


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_column_without_a_text_is_left_out_of_rows_of_fields(kind: str) -> None:
    given = [("A", "DATE"), ("B", kind)]
    raise_refusals(subject_of(given, Choice(insert=1, update=2)))
    (trigger,) = write(subject_of(given, Choice(insert=1, update=2)))
    assert '"B"' not in trigger.body
    with pytest.raises(CannotTrack, match=r"column B is of type .*: leave it out"):
        raise_refusals(subject_of(given, Choice(insert=1, update=2, columns=("A", "B"))))
    with pytest.raises(CannotTrack, match="--insert 1 would log nothing"):
        raise_refusals(subject_of(given[1:], Choice(insert=1, update=2)))


WIDE = [(1, 128), (30, 128), (60, 30)]


@pytest.mark.parametrize(("columns", "length"), WIDE)
@pytest.mark.parametrize("name", CHOICES)
def test_units_and_lines_are_short_at_any_width(name: str, columns: int, length: int) -> None:
    of = wide(columns, length, CHOICES[name])
    raise_refusals(of)
    (trigger,) = write(of)
    for statement in trigger.create:
        assert len(statement.encode()) < 32_000
        assert max(map(len, statement.encode().split(b"\n"))) < 2499
    written = Counter(re.findall(r':(?:old|new)\."[^"]+"', trigger.body))
    for column in of.columns:
        assert written[f':old."{column.name}"'] == 1
        assert written[f':new."{column.name}"'] == (1 if name == "rows" else 2)
    assert trigger.name in trigger_names(of.log, "T", [None])


def test_a_table_that_is_too_wide_for_one_trigger_is_refused_with_the_remedy() -> None:
    with pytest.raises(CannotTrack, match=r"have \d+ bytes, .* takes 30000: .* --insert 5 --update 6"):
        raise_refusals(wide(200, 30, Choice(insert=1, update=2)))
    raise_refusals(wide(200, 30, Choice(insert=5, update=6)))
    with pytest.raises(CannotTrack, match="leave columns out with --without"):
        raise_refusals(wide(1000, 30, Choice(insert=5, update=6)))


def test_a_long_choice_stands_on_record_alone() -> None:
    of = wide(1000, 30, Choice())
    of = wide(1000, 30, Choice(columns=tuple(column.name for column in of.columns)))
    assert of.choice.mark() not in write(of)[0].body
    for statement in write_record(of):
        assert max(map(len, statement.split("\n"))) < 2499
        assert max(map(len, re.findall(r"'(?:[^']|'')*'", statement))) < 4000


@pytest.mark.parametrize("name", ["a\n/\ngrant dba to eve", "a\r", "a\tb"])
def test_a_name_that_a_client_would_take_for_commands_is_refused(name: str) -> None:
    with pytest.raises(CannotTrack, match="holds a line end or another control character"):
        raise_refusals(subject_of([(name, "DATE")], Choice()))


# Names: a variable can be taken for a column only in SQL, and only without a prefix.

_STRINGS = re.compile(r"'(?:[^']|'')*'|--[^\n]*")
_SQL = re.compile(r"(?ms)^\s*(insert into .*?|select .*?);$")
_WORD = re.compile(r'"[^"]+"|\w+')
WORDS = "as case clob content end from insert into is not null returning select then values when"
WORDS_OF_SQL = frozenset(WORDS.split())


def identifiers(text: str) -> set[str]:
    words = _WORD.findall(_STRINGS.sub("''", text))
    return {word.strip('"').upper() for word in words if not word.isdigit()}


def at_risk(statement: str) -> set[str]:
    """Return the words of an SQL statement that a column of that name would be meant by."""
    bare = re.sub(r"(insert into \S+) \([^)]*\)", r"\1", _STRINGS.sub("''", statement))
    targets = re.findall(r"\binto (\w+)", bare)
    return {
        word[0].upper()
        for word in _WORD.finditer(bare)
        if word[0].lower() not in WORDS_OF_SQL | set(targets)
        and not word[0].isdigit()
        and bare[word.start() - 1 : word.start()] != "."
        and bare[word.end() : word.end() + 1] not in (".", "(")
        and not word[0].startswith('"')
    }


def everything(of: Subject) -> str:
    return "\n".join(statement for trigger in write(of) for statement in trigger.create)


@pytest.mark.parametrize("name", CHOICES)
def test_no_name_of_ours_meets_a_column(name: str) -> None:
    names = sorted(identifiers(everything(every_type(CHOICES[name]))) - {"K"})
    assert {"ARRIVED", "CAPTURING", "MOVED", "OLD", "NEW", "EVENT_TYPE", "PUT"} <= set(names)
    of = subject_of(((column, "VARCHAR2(9)") for column in names), CHOICES[name])
    for trigger in write(of):
        body = _STRINGS.sub("''", trigger.body)
        assert not re.search(r"\b(select|insert into|update|delete from|merge)\b", body)
        for column in names:
            rest = body.replace(f':old."{column}"', "").replace(f':new."{column}"', "")
            outside = rest.replace('"INDIRECT"."EVENTLOG', "")
            assert f'"{column}"' not in outside


def test_no_column_of_a_log_is_taken_for_a_parameter() -> None:
    names = ("PUT", "VALUE", "MADE", "NOTE", "ARRIVED", "MOVED", "SAID", "THIS", "TEXT1", "PLACE")
    ours = ("record_id", "status", "event_type", "event_time", "perpetrator", "table_name", "table_key")
    columns = dict(zip((*ours, "column_name", "old_value", "new_value"), names, strict=True))
    log = Log(ORACLE, schema="indirect", columns=columns)
    given = ((f"C{n}", kind) for n, kind in enumerate(TYPES))
    text = "\n".join((everything(subject_of(given, Choice(1, 2), log)), *routines(log)))
    found = list(_SQL.findall(text))
    assert sum(words.startswith("insert into") for words in found) == 3
    assert sum("sys.dual" in text for text in found) == 3
    for statement in found:
        if "sys.all_errors" not in statement:
            assert at_risk(statement) == set(), statement


def test_a_variable_without_its_label_would_be_seen() -> None:
    assert at_risk('insert into t ("a") values (put.b, who)') == {"WHO"}


def test_tables_called_old_and_new_have_other_words_for_their_rows() -> None:
    for name in ("OLD", "NEW"):
        of = table_of({"K": "DATE", "A": "DATE"}, ("K",), name=name)
        trigger = write(Subject(Log(ORACLE, schema="indirect"), Relation(of), Choice()))[0]
        assert "referencing old as o new as n\ncompound trigger" in trigger.create[-2]
        assert ':old."' not in trigger.body


def test_another_schema_is_granted_its_own_package_and_nothing_else() -> None:
    (trigger,) = write(every_type(Choice(), "ELSEWHERE"))
    grants = [statement for statement in trigger.create if statement.startswith("grant")]
    assert grants == [f'grant execute on {trigger.create[0].split()[4]} to "ELSEWHERE"']
    assert not any("grant" in statement for one in write(every_type(Choice())) for statement in one.create)


def test_packages_of_two_tables_never_share_a_name() -> None:
    """Separate a log A$B with a table C from a log A with a table B$C, in different schemas."""
    logs = Log(ORACLE, "A$B", schema="indirect"), Log(ORACLE, "A", schema="indirect")
    made = [
        write(Subject(log, Relation(table_of({"K": "DATE"}, ("K",), schema, name)), Choice()))[0].create[0]
        for log, schema, name in zip(logs, ("X", "Y"), ("C", "B$C"), strict=True)
    ]
    assert made[0].split()[4] != made[1].split()[4]
