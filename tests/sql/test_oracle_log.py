"""The place of a log in Oracle, the names of its objects, and the questions to its catalogue."""

from __future__ import annotations

import re

import pytest
import sqlfluff

from eventlog.core.errors import InvalidValue
from eventlog.sql.common import templates
from eventlog.sql.common.key_types import key_type_of
from eventlog.sql.names import COMPANIONS, Log
from eventlog.sql.oracle import ORACLE
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.queries import Queries
from eventlog.sql.schema.migrate import install_script
from eventlog.sql.trigger_rows import routines

pytestmark = pytest.mark.quick

CREATED_NAME = r"create (?:or replace )?(?:package|procedure|function) (?!body)([^\s(]+)"


def test_a_log_is_the_same_in_capitals_or_without() -> None:
    small, capital = Log(ORACLE, "eventlog", "indirect"), Log(ORACLE, "EVENTLOG", "INDIRECT")
    assert small.names() == capital.names()
    assert capital.companion_name("state") == "EVENTLOG_STATE"
    assert capital.reflected(capital.companion_name("version")) == "eventlog_version"
    assert Log(ORACLE, "EventLog").companion_name("state") == "EventLog_state"
    assert Log(POSTGRESQL, "EVENTLOG").companion_name("state") == "EVENTLOG_state"


def test_an_index_stands_in_the_schema_of_its_log() -> None:
    script = install_script(Log(ORACLE, schema="indirect"), future_events=True)
    made = re.findall(r"create (?:index|table|sequence) (\S+)", script)
    assert {"EVENTLOG_PENDING", "EVENTLOG_FUTURE"} <= {name.split('"')[3] for name in made}
    assert all(name.startswith('"INDIRECT".') for name in made)
    assert 'create index "EVENTLOG_PENDING"' in install_script(Log(ORACLE))


def test_two_logs_share_nothing() -> None:
    one, other = (Log(ORACLE, name, "indirect") for name in ("eventlog", "eventlog_2"))
    assert not {one.companion_name(name) for name in COMPANIONS} & {
        other.companion_name(name) for name in COMPANIONS
    }
    assert one.names()["lock_number"] != other.names()["lock_number"]
    created = [set(re.findall(CREATED_NAME, "\n".join(routines(log)))) for log in (one, other)]
    assert len(created[0]) == 5
    assert not created[0] & created[1]


def test_only_the_switch_has_a_variable_and_it_is_never_replaced() -> None:
    """Do not replace a package with a variable, because sessions that used it would fail (ORA-04068)."""
    for statement in routines(Log(ORACLE, schema="indirect")):
        replaced = re.match(r"create or replace package body", statement)
        if replaced and "LEADERSHIP" not in statement:
            assert not re.search(r"(?m)^  \w+ \w+.* := ", statement)
    (switch,) = (s for s in routines(Log(ORACLE, schema="indirect")) if "is_off boolean := false" in s)
    assert "create package" in switch
    assert "-955" in switch


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("catalogue_columns", {}),
        ("catalogue_log", Log(ORACLE, "process_log").names()),
        ("check_sequence", Log(ORACLE).names() | {"log_sequence_text": "'EVENTLOG_SEQUENCE'"}),
        ("lock_holders", Log(ORACLE, schema="indirect").names()),
        ("hold_lock", Log(ORACLE, schema="indirect").names()),
        ("held_by_session", Log(ORACLE, schema="indirect").names()),
    ],
)
@pytest.mark.long
def test_the_statement_parses(statement: str, names: dict[str, str]) -> None:
    text = templates.statement(ORACLE, statement, **names)
    sqlfluff.parse(text + ("\n/\n" if text.startswith("begin") else "\n"), dialect="oracle")


def test_a_sequence_with_a_cache_and_an_order_is_no_fault() -> None:
    asked = templates.statement(ORACLE, "check_sequence", log_sequence_text="''", schema_text="''")
    assert re.findall(r"where .*", asked) == [
        "where sequence_owner = '' and sequence_name = '' and order_flag = 'N'"
    ]


def test_the_lock_is_no_transactions_where_the_session_can_have_it() -> None:
    queries = Queries(Log(ORACLE, schema="indirect"))
    assert str(queries.clause("hold_lock")) == 'begin "INDIRECT"."EVENTLOG_LEADERSHIP".hold; end;'
    (body,) = (s for s in routines(queries.log) if 'body "INDIRECT"."EVENTLOG_LEADERSHIP"' in s)
    assert f"using out answer, in {queries.name('lock_number')};" in body


def test_a_raw_of_any_length_is_looked_up_by_its_digits() -> None:
    raw, blob = (key_type_of(ORACLE.values.key_types, kind) for kind in ("RAW(2000)", "BLOB"))
    assert raw is not None
    assert blob is not None
    assert raw.sent("qqo=") == "aaaa"
    assert raw.matches == "{c} = hextoraw({k})"
    with pytest.raises(InvalidValue):
        blob.sent("qqo=")


def test_what_goes_round_the_triggers_is_named() -> None:
    reported = " ".join(way for way, _ in ORACLE.triggers.ways_round)
    for words in ("locator", "flashback table", "GoldenGate", "XStream", "direct-path"):
        assert words in reported
