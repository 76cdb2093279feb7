"""Oracle's statements without an Oracle: each is read by a parser of that dialect, as it would be sent."""

from __future__ import annotations

import pytest
import sqlfluff

from eventlog.sql.common.templates import statements
from eventlog.sql.log.pending import LOWEST, PickUpFilter, pending_statement
from eventlog.sql.names import Log
from eventlog.sql.oracle import ORACLE
from eventlog.sql.queries import Queries
from eventlog.sql.stored import OURS, Stored, storage_of

pytestmark = pytest.mark.quick

QUERIES = Queries(Log(ORACLE))
FOREIGN_TYPES = {
    "record_id": "NUMBER",
    "status": "CHAR(4)",
    "event_type": "NUMBER(3,0)",
    "event_time": "DATE",
    "perpetrator": "NCHAR(30)",
    "table_key": "CHAR(60)",
}
STORED = {
    name: Stored(storage, of) for name, of in FOREIGN_TYPES.items() if (storage := storage_of(of, ORACLE))
}
ATTACHED = Queries(Log(ORACLE, "process_log", local_time=True, stored=OURS | STORED))
HOLES = {
    "conditions": QUERIES.pieces("pending", "not_held", "not_loopback", "not_future", "after_row"),
    "order": QUERIES.piece("by_event_time"),
    "rows": QUERIES.relation(),
    "letters": "'S'",
    "source": '"S"."T"',
    "keys": 't."K"',
    "within": 't."K" > :a0',
    "key_text": "'k=' || t.\"K\"",
    "columns": ', t."A"',
    "not_held": QUERIES.piece("not_held"),
    "functions": "",
    "typed_keys": "",
    "typed_paths": ", k0 number path '$.k0'",
    "matches": 't."K" = k.k0',
}
STATEMENTS = """
adopt begin_epoch counts current epoch fail finish forget_failure association every_retry
forget_event forget_spelling forget_spellings handled_before hold hold_spelling ids key_collations
lead next_retry note rename_retry retries retries_of spelled_by_id spellings_of notices now
backlog pending_count pause pending_bytes pending_sizes purge sizes_by_id failed_together relatives retype
lock_state finish_range remove_range held record_cycle record_heartbeat remember remembered remove
renew resume row_facts resync_advance resync_begin resync_forget resync_found rows_by_id rows_about settle
skip state unpublished check_ids pending_among log_lockers touch_log tried_after
"""
UNKNOWN_TO_THE_PARSER = {
    "offset :skip rows ": "",  # the row limiting clause without its offset, it knows
    "in :objects": "in (:objects)",  # the list is written out when it is run
}


def parse(statement: str) -> None:
    for words, instead in UNKNOWN_TO_THE_PARSER.items():
        statement = statement.replace(words, instead)
    assert "unparsable" not in str(sqlfluff.parse(statement + "\n", dialect="oracle"))


@pytest.mark.long
@pytest.mark.parametrize("queries", [QUERIES, ATTACHED], ids=["own", "attached"])
@pytest.mark.parametrize("name", STATEMENTS.split())
def test_a_statement_is_oracles(queries: Queries, name: str) -> None:
    parse(str(queries.clause(name, **HOLES)))


@pytest.mark.parametrize("queries", [QUERIES, ATTACHED], ids=["own", "attached"])
@pytest.mark.long
def test_pending_rows_are_summed_up_in_oracles_words(queries: Queries) -> None:
    late = f"case when {queries.piece('not_future')} then 1 else 0 end = 0"
    holes = {"loopback": queries.piece("loopback"), "future": late, "not_held": queries.piece("not_held")}
    more = {"rows": queries.relation(), "conditions": queries.piece("pending")}
    parse(str(queries.clause("pending_fates", **holes, **more)))


def test_the_columns_of_a_log_are_asked_for_in_oracles_words() -> None:
    (statement,) = statements(ORACLE, "catalogue_log", Log(ORACLE, "process_log").names())
    parse(statement)


@pytest.mark.parametrize("name", ["pick_up", "further", "resync_keys"])
def test_a_statement_that_goes_on_from_a_row_is_oracles(name: str) -> None:
    parse(str(QUERIES.clause(name, **HOLES)))


@pytest.mark.parametrize("future", [True, False])
@pytest.mark.parametrize(("after", "upto"), [(LOWEST, None), (5, None), (5, 9)])
@pytest.mark.long
def test_a_pick_up_is_oracles(future: bool, after: int, upto: int | None) -> None:
    choice = PickUpFilter(driver_user="idm", future=future)
    clause, _ = pending_statement(QUERIES, "pick_up", choice, after, upto)
    parse(str(clause))


def test_failures_are_found_in_oracles_words() -> None:
    found = QUERIES.pieces("has_failed", "after_row", "of_table", "of_reason", "of_ids")
    parse(str(QUERIES.clause("failures", conditions=found)))


def test_skips_are_read_in_oracles_words() -> None:
    parse(str(QUERIES.clause("notices", conditions=QUERIES.piece("about_rows"))))
