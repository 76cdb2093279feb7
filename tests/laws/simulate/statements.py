"""The named statements of the log's SQL, as they work on tables in memory.

Each function has the name of a statement and does what its purpose in the .sql file states. Conditions come
as the names of their pieces. `test_store` runs the same statements on PostgreSQL and compares all answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from eventlog.core.entry import COLUMNS
from eventlog.sql.log.log_admin import LogState
from eventlog.sql.log.log_record import Notice
from tests.laws.simulate.store import Store, Transaction, Values

EPOCH = datetime(2026, 1, 1)
Rows = list[tuple[Any, ...]]
_KEYS = {
    "log": ("record_id",),
    "state": ("one",),
    "batch": ("batch",),
    "retry": ("object_hash", "first_id"),
    "held": ("object_hash", "spelling_hash"),
    "failed": ("record_id",),
    "answer": ("batch", "part"),
    "try": ("record_id", "try_number"),
    "sent": ("record_id",),
    "notice": ("notice_id",),
    "known": ("object_table", "key_hash"),
}


class UserTable(NamedTuple):
    """A table of somebody's data."""

    key: str
    columns: tuple[str, ...]


class OnItsWay(NamedTuple):
    """An object in the state whose event is on its way."""

    first_id: int
    last_id: int
    object_table: str
    key_hash: str
    digest: str | None
    next_digest: str | None
    failed: int


def make_tables(store: Store, user_tables: Mapping[str, UserTable]) -> None:
    """Make the tables of an installed log, and those of a user."""
    for name, key in _KEYS.items():
        store.table(name, *key)
    for name, user_table in user_tables.items():
        store.table(name, user_table.key)
    first = store.begin(0.0)
    state = {"one": 1, "epoch": 0, "leader": None, "session": None, "paused_at": None}
    store.insert(first, "state", state)
    store.end(first, commit=True)


class Statements:
    """The statements of one transaction."""

    def __init__(self, store: Store, transaction: Transaction, user_tables: Mapping[str, UserTable]) -> None:
        self._store = store
        self._transaction = transaction
        self._user_tables = user_tables

    def run(self, name: str, holes: Mapping[str, str], values: Mapping[str, Any]) -> Rows | int:
        """Return the rows of a statement, or how many it changed."""
        return getattr(self, f"do_{name}")(holes, **values)  # type: ignore[no-any-return]

    # --- tools

    @property
    def now(self) -> datetime:
        """The clock of the transaction."""
        return EPOCH + timedelta(seconds=self._transaction.began)

    def _rows(self, name: str) -> list[Values]:
        return self._store.rows(self._transaction, name)

    def _log(self) -> list[Values]:
        """Return the rows of the log by their ids."""
        return sorted(self._rows("log"), key=lambda row: row["record_id"])

    def _among(self, ids: str) -> list[Values]:
        wanted_ids = set(json.loads(ids))
        return [row for row in self._log() if row["record_id"] in wanted_ids]

    def _delete(self, name: str, **values: Any) -> int:
        return self._store.delete(
            self._transaction, name, lambda row: all(row[n] == value for n, value in values.items())
        )

    def _change(self, name: str, where: Callable[[Values], bool], **values: Any) -> int:
        return self._store.update(self._transaction, name, where, lambda row: values)

    def _insert(self, name: str, values: Values) -> int:
        self._store.insert(self._transaction, name, values)
        return 1

    def _state(self) -> Values:
        (state,) = self._rows("state")
        return state

    def _pending(self, holes: Mapping[str, str], values: Mapping[str, Any]) -> list[Values]:
        """Return the rows of the log under the conditions of a statement, in its order."""
        names = holes["conditions"].split()
        halted = {value for name, value in values.items() if name.startswith("halted_")}
        spellings = {(row["table_name"], row["table_key"]) for row in self._rows("held")}
        tests: dict[str, Callable[[Values], bool]] = {
            "pending": lambda row: row["status"] == "N",
            "has_failed": lambda row: row["status"] in ("E", "F"),
            "after_row": lambda row: row["record_id"] > values["after"],
            "up_to_row": lambda row: row["record_id"] <= values["upto"],
            "of_ids": lambda row: row["record_id"] in json.loads(values["ids"]),
            "loopback": lambda row: row["perpetrator"] == values["driver_user"],
            "not_loopback": lambda row: row["perpetrator"] != values["driver_user"],
            "not_held": lambda row: (row["table_name"], row["table_key"]) not in spellings,
        }
        chosen = [tests[name] for name in names if name in tests]
        return [
            row
            for row in self._log()
            if all(test(row) for test in chosen) and str(row["table_name"]).lower() not in halted
        ]

    def _limited(self, holes: Mapping[str, str], values: Mapping[str, Any]) -> list[Values]:
        rows, skip = self._pending(holes, values), values.get("skip", 0)
        return rows[skip : skip + values["most"]]

    # --- snapshots

    def do_snapshot(self, holes: object) -> Rows:
        return []

    do_work = do_savepoint = do_back_to_savepoint = do_snapshot

    def do_expect_kind(self, holes: object) -> Rows:
        return [(None,)]

    def do_moment(self, holes: object) -> Rows:
        notices = self._rows("notice")
        redrives = [row["notice_id"] for row in notices if row["kind"] == "redrive"]
        retries = [row["next_at"] for row in self._rows("retry")]
        return [
            (
                1,
                self.now.isoformat(" "),
                max(redrives, default=0),
                max((row["notice_id"] for row in notices), default=None),
                min(retries, default=None),
                max(retries, default=None),
                self._store.oldest_writer(),
            )
        ]

    def do_log_position(self, holes: object) -> Rows:
        self._store.view(self._transaction)
        return [(self._store.sequence, int(self._store.sequence > 0))]

    def do_number_transaction(self, holes: object) -> Rows:
        return [(self._store.number(self._transaction),)]

    def do_ids_ascend(self, holes: object) -> Rows:
        return [(1,)]

    def do_attached(self, holes: object) -> Rows:
        return [(0,)]

    def do_association(self, holes: object) -> Rows:
        return [(None,)]

    def do_tracked_names(self, holes: object) -> Rows:
        return [(*name.split("."),) for name in self._user_tables]

    def do_pick_up(self, holes: Mapping[str, str], **values: Any) -> Rows:
        return [_cells(row) for row in self._limited(holes, values)]

    def do_pick_few(self, holes: Mapping[str, str], few: int, most_bytes: int, **values: Any) -> Rows:
        rows = self._limited(holes, values)
        fits = len(rows) < few and sum(map(_size, rows)) <= most_bytes
        return [_cells(row) for row in rows] if fits else []

    def do_columns_picked(self, holes: Mapping[str, str], **values: Any) -> Rows:
        return [_by_column(row) for row in self._limited(holes, values)]

    def do_columns_by_id(self, holes: object, ids: str) -> Rows:
        return [_by_column(row) for row in self._among(ids)]

    def do_pending_sizes(self, holes: Mapping[str, str], **values: Any) -> Rows:
        return [(row["record_id"], _size(row)) for row in self._limited(holes, values)]

    def do_pending_bytes(self, holes: Mapping[str, str], **values: Any) -> Rows:
        rows = self._limited(holes, values)
        return [(sum(map(_size, rows)), len(rows))]

    def do_further(self, holes: Mapping[str, str], **values: Any) -> Rows:
        names = ("record_id", "event_type", "table_name", "table_key")
        return [tuple(row[name] for name in names) for row in self._limited(holes, values)]

    def do_ids(self, holes: Mapping[str, str], **values: Any) -> Rows:
        return [(row["record_id"],) for row in self._limited(holes, values)]

    def do_rows_by_id(self, holes: object, ids: str) -> Rows:
        return [_cells(row) for row in self._among(ids)]

    def do_sizes_by_id(self, holes: object, ids: str) -> Rows:
        return [(row["record_id"], _size(row)) for row in self._among(ids)]

    def do_held(self, holes: object) -> Rows:
        return [(name,) for name in sorted({row["object_hash"] for row in self._rows("retry")})]

    def do_remembered(self, holes: object) -> Rows:
        rows = (row for row in self._rows("batch") if row["settled_at"] is None)
        return sorted((row["batch"], row["epoch"], None, row["content"]) for row in rows)

    def do_latest_batch(self, holes: object) -> Rows:
        rows = [*self._rows("batch"), *self._rows("answer")]
        return [(max((row["batch"] for row in rows), default=None),)]

    def do_retries(self, holes: object, **values: Any) -> Rows:
        rows = self._rows("retry")
        first = {
            name: min(row["first_id"] for row in rows if row["object_hash"] == name)
            for name in {row["object_hash"] for row in rows}
        }
        due = [
            row
            for row in rows
            if (row["next_at"] <= values["until"] or row["next_at"] > values["beyond"])
            and first[row["object_hash"]] == row["first_id"]
        ]
        due.sort(key=lambda row: (row["next_at"], row["first_id"]))
        names = ("event_id", "object_table", "object_key", "record_ids", "max_changes", "tries", "next_at")
        return [(*(row[name] for name in names), row["reason"]) for row in due[: values["most"]]]

    def do_highest(self, holes: object) -> Rows:
        return [(max((row["record_id"] for row in self._rows("sent")), default=None),)]

    def do_demand_redrive(self, holes: object, redriven: int) -> Rows:
        return [row for row in self.do_latest_redrive(holes) if row == (redriven,)]

    def do_latest_redrive(self, holes: object) -> Rows:
        redrives = (row["notice_id"] for row in self._rows("notice") if row["kind"] == "redrive")
        return [(max(redrives, default=0),)]

    def do_current_measured(self, holes: Mapping[str, str], first: int, keys: str, **values: Any) -> Rows:
        name = holes["rows"]
        self._store.keep_form(self._transaction, name)
        user_table = self._user_tables[name]
        rows = {str(row[user_table.key]): row for row in self._rows(name)}
        rows_read: Rows = []
        size = 0
        for place, (key,) in enumerate(zip(*json.loads(keys).values(), strict=True), first):
            if (row := rows.get(key)) is not None and size < values["most"]:
                texts = [row[column] for column in user_table.columns]
                octets = sum(len(text.encode()) for text in texts if text is not None)
                size += octets
                rows_read.append((place, octets, *texts))
        return rows_read

    def do_table_forms(
        self, holes: object, schemas: Sequence[str], names: Sequence[str], every: bool
    ) -> Rows:
        places = [(schema, name, f"{schema}.{name}") for schema, name in zip(schemas, names, strict=True)]
        return [
            (schema, name, str(self._store.form_seen(self._transaction, table)))
            for schema, name, table in places
            if every or self._store.form_seen(self._transaction, table) != self._store.form_now(table)
        ]

    def do_lock_tables(self, holes: Mapping[str, str]) -> Rows:
        for name in holes["tables"].replace('"', "").split(", "):
            self._store.keep_form(self._transaction, name, naps=10)
        return []

    # --- what the leader writes

    def do_demand_epoch(self, holes: object, epoch: int, leaves: int) -> Rows:
        rows = self._store.lock(self._transaction, "state", "share")
        is_free = [row for row in rows if row["paused_at"] is None or not leaves]
        return [(row["epoch"],) for row in is_free if row["epoch"] == epoch]

    def do_demand_none_due(self, holes: object, due: datetime) -> Rows:
        return [] if any(row["next_at"] <= due for row in self._rows("retry")) else [(1,)]

    def do_epoch(self, holes: object) -> Rows:
        return [(row["epoch"],) for row in self._store.lock(self._transaction, "state", "share")]

    def do_finish(self, holes: object, ids: str, letter: str) -> int:
        wanted_ids = set(json.loads(ids))
        return self._change(
            "log", lambda row: row["record_id"] in wanted_ids and row["status"] == "N", status=letter
        )

    def do_finish_range(self, holes: object, low: int, high: int, letter: str) -> int:
        return self._change(
            "log", lambda row: low <= row["record_id"] <= high and row["status"] == "N", status=letter
        )

    def do_remove(self, holes: object, ids: str) -> int:
        wanted_ids = set(json.loads(ids))
        return self._store.delete(
            self._transaction, "log", lambda row: row["record_id"] in wanted_ids and row["status"] == "N"
        )

    def do_remove_range(self, holes: object, low: int, high: int) -> int:
        return self._store.delete(
            self._transaction, "log", lambda row: low <= row["record_id"] <= high and row["status"] == "N"
        )

    def do_pending_among(self, holes: object, ids: str) -> Rows:
        return [(row["record_id"],) for row in self._among(ids) if row["status"] == "N"]

    def do_fail(self, holes: object, **values: Any) -> int:
        return self._insert("failed", values)

    def do_forget_failure(self, holes: object, ids: str) -> int:
        wanted_ids = set(json.loads(ids))
        return self._store.delete(self._transaction, "failed", lambda row: row["record_id"] in wanted_ids)

    def _tries(self, ids: str) -> list[Values]:
        """Return the tries of rows, oldest first."""
        wanted_ids = set(json.loads(ids))
        rows = [row for row in self._rows("try") if row["record_id"] in wanted_ids]
        return sorted(rows, key=lambda row: (row["record_id"], row["try_number"]))

    def do_tries_of(self, holes: object, ids: str) -> Rows:
        names = ("record_id", "try_number", "batch", "part")
        return [tuple(row[name] for name in names) for row in self._tries(ids)]

    def do_last_part(self, holes: object, batch: int) -> Rows:
        return [(max((row["part"] for row in self._rows("answer") if row["batch"] == batch), default=0),)]

    def do_first_place(self, holes: object) -> Rows:
        return [(min((row["batch"] for row in self._rows("answer")), default=0),)]

    def do_keep_answer(self, holes: object, answered_at: datetime | None, **values: Any) -> int:
        return self._insert("answer", values | {"answered_at": answered_at or self.now})

    def do_keep_try(self, holes: object, **values: Any) -> int:
        return self._insert("try", values)

    def do_drop_try(self, holes: object, record_id: int, try_number: int) -> int:
        return self._delete("try", record_id=record_id, try_number=try_number)

    def do_forget_tries(self, holes: object, ids: str) -> int:
        wanted_ids = set(json.loads(ids))
        return self._store.delete(self._transaction, "try", lambda row: row["record_id"] in wanted_ids)

    def do_forget_answers(self, holes: object, ids: str) -> int:
        batches, used = set(json.loads(ids)), {(row["batch"], row["part"]) for row in self._rows("try")}
        return self._store.delete(
            self._transaction,
            "answer",
            lambda row: row["batch"] in batches and (row["batch"], row["part"]) not in used,
        )

    def do_tried_pending(self, holes: object, **values: Any) -> Rows:
        tried = {row["record_id"] for row in self._rows("try")}
        rows = [row for row in self._log() if row["record_id"] in tried and row["status"] == "N"]
        return [(row["record_id"],) for row in rows[: values["most"]]]

    def do_answers_to(self, holes: object, ids: str) -> Rows:
        answers = {(row["batch"], row["part"]): row for row in self._rows("answer")}
        return [
            (
                *(row[name] for name in ("record_id", "try_number", "event_id")),
                *(answers[row["batch"], row["part"]][name] for name in ("answer", "words", "answered_at")),
                row["batch"],
            )
            for row in self._tries(ids)
        ]

    def do_failed_before(self, holes: object, ids: str) -> Rows:
        letters = {row["record_id"]: row["status"] for row in self._among(ids)}
        return [
            (row["record_id"], letters[row["record_id"]], row["event_id"], row["reason"], self.now)
            for row in self._rows("failed")
            if row["record_id"] in letters
        ]

    def do_remember(self, holes: object, **values: Any) -> int:
        return self._insert("batch", values | {"settled_at": None})

    def do_settle(self, holes: object, batch: int) -> int:
        return self._change("batch", lambda row: row["batch"] == batch, settled_at=self.now)

    def do_forget_batch(self, holes: object, batch: int) -> int:
        return self._delete("batch", batch=batch)

    def do_adopt(self, holes: object, epoch: int) -> int:
        return self._change("batch", lambda row: row["settled_at"] is None, epoch=epoch)

    def do_note_highest(self, holes: object, highest: int) -> int:
        if any(row["record_id"] >= highest for row in self._rows("sent")):
            return 0
        return self._insert("sent", {"record_id": highest})

    def do_forget_lower(self, holes: object, former: int, highest: int) -> int:
        return self._store.delete(self._transaction, "sent", lambda row: former <= row["record_id"] < highest)

    def do_hold(self, holes: object, table_name: str, table_key: str, **values: Any) -> int:
        return self._insert("retry", values | {"object_table": table_name, "object_key": table_key})

    def do_hold_spelling(self, holes: object, **values: Any) -> int:
        return self._insert("held", values)

    def do_forget_event(self, holes: object, object_hash: str, event_id: str) -> int:
        return self._delete("retry", object_hash=object_hash, event_id=event_id)

    def do_forget_spelling(self, holes: object, object_hash: str, spelling_hash: str) -> int:
        return self._delete("held", object_hash=object_hash, spelling_hash=spelling_hash)

    def do_forget_spellings(self, holes: object, object_hash: str) -> int:
        if any(row["object_hash"] == object_hash for row in self._rows("retry")):
            return 0
        return self._delete("held", object_hash=object_hash)

    def do_spelled_by_id(self, holes: object, ids: str) -> Rows:
        return [(row["record_id"], row["table_name"], row["table_key"]) for row in self._among(ids)]

    def do_every_retry(self, holes: object) -> Rows:
        names = ("object_hash", "first_id", "event_id", "object_table", "object_key", "record_ids")
        return [tuple(row[name] for name in names) for row in self._rows("retry")]

    def do_retry_reasons(self, holes: object) -> Rows:
        waiting = (row for row in self._rows("retry") if row["next_at"] > self.now)
        return [(row["event_id"], row["object_hash"], row["reason"]) for row in waiting]

    def do_try_now(self, holes: object, object_hash: str, event_id: str) -> int:
        event = (object_hash, event_id)
        return self._change(
            "retry", lambda row: (row["object_hash"], row["event_id"]) == event, next_at=self.now
        )

    def do_record_cycle(self, holes: object, facts: str) -> int:
        return self._change("state", lambda row: True, cycle_facts=facts)

    def do_record_rest(self, holes: object) -> int:
        return self._change("state", lambda row: True, rested_at=self.now)

    def do_record_settings(self, holes: object, settings: str) -> int:
        return self._change("state", lambda row: True, published_as=settings)

    def do_record_heartbeat(self, holes: object) -> int:
        return self._change("state", lambda row: True, heartbeat_at=self.now)

    def do_notices(self, holes: object, **values: Any) -> Rows:
        """Return the latest notices of a kind."""
        rows = [row for row in self._rows("notice") if row["kind"] == values["kind"]]
        rows.sort(key=lambda row: -int(row["notice_id"]))
        return [tuple(row.get(name) for name in Notice._fields) for row in rows[: values["most"]]]

    def do_tried_after(self, holes: object, after: int, only_all: int) -> Rows:
        tries = [row for row in self._rows("notice") if row["kind"] == "retry" and row["notice_id"] > after]
        newest = (row["notice_id"] for row in tries if row["first_id"] is None or not only_all)
        return [(max(newest, default=None),)]

    def do_note(self, holes: object, **values: Any) -> int:
        self._store.notices += 1
        return self._insert("notice", values | {"notice_id": self._store.notices})

    # --- leaders

    def do_state(self, holes: object) -> Rows:
        state = self._state()
        return [tuple(state.get(name) for name in LogState._fields)]

    def do_pending_count(self, holes: object) -> Rows:
        redriven = sum(row["row_count"] for row in self._rows("notice") if row["kind"] == "redrive")
        return [(self.now, sum(row["status"] == "N" for row in self._rows("log")), redriven)]

    def do_paused(self, holes: object) -> Rows:
        return [(self._state()["paused_at"],)]

    def do_leader_session(self, holes: object) -> Rows:
        return [(self._state()["session"],)]

    def do_begin_epoch(self, holes: object, leader: str, session_id: str) -> int:
        return self._store.update(
            self._transaction,
            "state",
            lambda row: True,
            lambda row: {"epoch": row["epoch"] + 1, "leader": leader, "session": session_id},
        )

    # --- operators

    def do_lock_state(self, holes: object) -> Rows:
        return [(row["one"],) for row in self._store.lock(self._transaction, "state", "update")]

    def do_renew(self, holes: object, ids: str) -> int:
        wanted_ids = set(json.loads(ids))
        return self._change(
            "log", lambda row: row["record_id"] in wanted_ids and row["status"] in "EF", status="N"
        )

    def do_retype(self, holes: object, ids: str, type: int) -> int:
        wanted_ids = set(json.loads(ids))
        return self._change(
            "log", lambda row: row["record_id"] in wanted_ids and row["status"] in "EF", event_type=type
        )

    def do_skip(self, holes: object, ids: str) -> int:
        wanted_ids = set(json.loads(ids))
        return self._change(
            "log", lambda row: row["record_id"] in wanted_ids and row["status"] in "NEF", status="W"
        )

    def do_failures(self, holes: Mapping[str, str], **values: Any) -> Rows:
        failed = {row["record_id"]: row for row in self._rows("failed")}
        rows = self._limited(holes, values)
        names = ("record_id", "status", "event_type", "table_name", "table_key", "column_name")
        kept_names = ("event_id", "reason", "document", "tries")
        return [
            (
                *(row[name] for name in names),
                *(failed.get(row["record_id"], {}).get(name) for name in kept_names),
                self.now,
            )
            for row in rows
        ]

    def do_failed_together(self, holes: object, ids: str) -> Rows:
        wanted_ids, rows = set(json.loads(ids)), self._rows("failed")
        events = {row["event_id"] for row in rows if row["record_id"] in wanted_ids} - {None}
        return [(row["record_id"], row["event_id"]) for row in rows if row["event_id"] in events]

    def do_relatives(self, holes: object, ids: str) -> Rows:
        objects = {(row["table_name"], row["table_key"]) for row in self._among(ids)}
        failed = {row["record_id"]: row["event_id"] for row in self._rows("failed")}
        names = ("record_id", "event_type", "status", "table_name", "table_key", "column_name")
        return [
            (*(row[name] for name in names), failed.get(row["record_id"]))
            for row in self._log()
            if (row["table_name"], row["table_key"]) in objects
        ]

    def do_retries_of(self, holes: object, spelling_hash: str) -> Rows:
        hashes = {row["object_hash"] for row in self._rows("held") if row["spelling_hash"] == spelling_hash}
        rows = [row for row in self._rows("retry") if row["object_hash"] in hashes]
        return [(row["object_hash"], row["event_id"], row["record_ids"]) for row in rows]

    def do_slot_facts(self, holes: object) -> Rows:
        return [(None,)]

    # --- the state of the receiver, of a log that is filled by comparing

    def do_compare_rows(self, holes: Mapping[str, str]) -> Rows:
        name = holes["table"]
        self._store.keep_form(self._transaction, name)
        user_table = self._user_tables[name]
        return [
            (str(row[user_table.key]), *(row[column] for column in user_table.columns))
            for row in self._rows(name)
        ]

    def do_compared_before(self, holes: object) -> Rows:
        tables = {row["table_name"] for row in self._rows("notice") if row["kind"] == "compare"}
        return [(table,) for table in sorted(tables)]

    def do_brake_noted(self, holes: object) -> Rows:
        notices = sorted(self._rows("notice"), key=lambda row: row["notice_id"])
        return [(row["table_name"], row["kind"]) for row in notices if row["kind"] in ("resume", "pass")]

    def _objects(self, table: str | None = None) -> list[Values]:
        """Return what is known of objects."""
        rows = [row for row in self._rows("known") if row["key_hash"] != "base"]
        return [row for row in rows if table in (None, row["object_table"])]

    def do_known_bases(self, holes: object) -> Rows:
        return [
            (row["object_table"], row["row_values"])
            for row in self._rows("known")
            if row["key_hash"] == "base"
        ]

    def do_known_counts(self, holes: object) -> Rows:
        tables = sorted({row["object_table"] for row in self._rows("known")})
        return [(table, len(self._objects(table))) for table in tables]

    def do_known_of(self, holes: object, object_table: str) -> Rows:
        names = ("object_key", "key_hash", "digest", "row_values", "failed", "next_digest", "first_id")
        return [tuple(row[name] for name in names) for row in self._objects(object_table)]

    def do_known_among(self, holes: object, object_table: str, hashes: Sequence[str]) -> Rows:
        names = ("key_hash", "digest", "next_digest", "first_id", "last_id", "failed")
        rows = [row for row in self._objects(object_table) if row["key_hash"] in hashes]
        return [tuple(row[name] for name in names) for row in rows]

    def do_known_page(self, holes: object, **values: Any) -> list[Any]:
        rows = [row for row in self._objects() if (row["first_id"] or 0) > values["after"]]
        rows.sort(key=lambda row: row["first_id"])
        return [OnItsWay(*(row[name] for name in OnItsWay._fields)) for row in rows[: values["most"]]]

    def do_known_letters(self, holes: object, after: int, upto: int) -> Rows:
        lone = {row["record_id"] for row in self._rows("failed") if row["event_id"] is None}
        return [
            (event["first_id"], "R" if row["record_id"] in lone else row["status"])
            for event in self._objects()
            if event["first_id"] is not None and after < event["first_id"] <= upto
            for row in self._log()
            if event["first_id"] <= row["record_id"] <= event["last_id"]
            and (row["table_name"], row["table_key"]) == (event["object_table"], event["object_key"])
        ]

    def _mark(self, table: str, hashes: Sequence[str], change: Callable[[Values], Values]) -> int:
        return self._store.update(
            self._transaction,
            "known",
            lambda row: row["object_table"] == table and row["key_hash"] in hashes,
            change,
        )

    def do_known_renewed(self, holes: object, object_table: str, hashes: Sequence[str]) -> int:
        def change(row: Values) -> Values:
            leads = None if row["next_digest"] is None else "?"
            digest = "??" if row["digest"] in (None, "??", "???") else "?"
            unknown_values = {"row_values": None, "next_values": None}
            return {"digest": digest, "next_digest": leads, "failed": 0} | unknown_values

        return self._mark(object_table, hashes, change)

    def do_known_failed(self, holes: object, object_table: str, hashes: Sequence[str]) -> int:
        return self._mark(object_table, hashes, lambda row: {"failed": 1})

    def do_known_partly(self, holes: object, object_table: str, hashes: Sequence[str]) -> int:
        return self._mark(object_table, hashes, lambda row: {"digest": "?", "row_values": None, "failed": 1})

    def do_known_unsure(self, holes: object, object_table: str, hashes: Sequence[str]) -> int:
        return self._mark(object_table, hashes, lambda row: {"digest": "??", "failed": 1})

    def do_known_lacking(self, holes: object, object_table: str, hashes: Sequence[str]) -> int:
        values = {"digest": "???", "row_values": None, "next_digest": "?", "next_values": None, "failed": 1}
        return self._mark(object_table, hashes, lambda row: values)

    def do_known_resent(self, holes: object, object_table: str, hashes: Sequence[str]) -> int:
        def change(row: Values) -> Values:
            nothing = dict.fromkeys(("row_values", "next_digest", "next_values", "first_id", "last_id"))
            return nothing | {"digest": "??" if row["digest"] is None else "?", "failed": 0}

        return self._mark(object_table, hashes, change)

    def do_known_settled(self, holes: object, object_table: str, hashes: Sequence[str]) -> int:
        def change(row: Values) -> Values:
            is_unsure = row["digest"] in ("??", "???") and row["next_digest"] == "?"
            nothing = dict.fromkeys(("next_digest", "next_values", "first_id", "last_id"))
            digest = "??" if is_unsure else row["next_digest"]
            return nothing | {"digest": digest, "row_values": row["next_values"]}

        return self._mark(object_table, hashes, change)

    def do_known_gone(self, holes: object, object_table: str, hashes: Sequence[str]) -> int:
        return self._store.delete(
            self._transaction,
            "known",
            lambda row: row["object_table"] == object_table and row["key_hash"] in hashes,
        )

    def do_known_given_up(self, holes: object, first_id: int, last_id: int, **place: Any) -> int:
        def change(row: Values) -> Values:
            if row["failed"]:
                return {"failed": 1}
            is_unsure = row["digest"] in (None, "??", "???") or row["next_digest"] is None
            return {"digest": "??" if is_unsure else "?", "row_values": None, "failed": 1}

        def is_meant(row: Values) -> bool:
            same = all(row[name] == value for name, value in place.items())
            return (
                same
                and row["first_id"] is not None
                and row["first_id"] <= last_id
                and row["last_id"] >= first_id
            )

        return self._store.update(self._transaction, "known", is_meant, change)

    def do_known_doubt(self, holes: object) -> int:
        def change(row: Values) -> Values:
            digest = row["digest"] if row["digest"] in (None, "??", "???") else "?"
            leads = "?" if row["failed"] and row["next_digest"] is not None else row["next_digest"]
            return {"digest": digest, "row_values": None, "next_digest": leads}

        return self._store.update(
            self._transaction,
            "known",
            lambda row: row["key_hash"] != "base" and (row["first_id"] is None or row["failed"] == 1),
            change,
        )

    def do_known_forget_table(self, holes: object, object_table: str) -> int:
        return self._delete("known", object_table=object_table)

    def do_known_forget_all(self, holes: object, rows: str) -> int:
        return sum(self._delete("known", **row) for row in json.loads(rows))

    def do_known_next_all(self, holes: object, rows: str) -> int:
        return sum(
            self._mark(row["object_table"], [row["key_hash"]], lambda _, row=row: row | {"failed": 0})  # type: ignore[misc]
            for row in json.loads(rows)
        )

    def do_known_put_all(self, holes: object, rows: str) -> int:
        for row in json.loads(rows):
            values = row | {"failed": 0}
            if not self._mark(row["object_table"], [row["key_hash"]], lambda _, values=values: values):  # type: ignore[misc]
                self._insert("known", values)
        return len(rows)

    def do_compare_newest(self, holes: object) -> Rows:
        return [(max((row["record_id"] for row in self._rows("log")), default=None),)]

    def do_compare_among(self, holes: object, ids: str) -> Rows:
        names = ("record_id", "event_type", "table_name", "table_key")
        return [tuple(row[name] for name in names) for row in self._among(ids)]

    def do_compare_log_all(self, holes: object, rows: str) -> int:
        for row in json.loads(rows):
            self._store.sequence += 1
            values = {"record_id": self._store.sequence, "status": "N", "event_time": self.now.isoformat(" ")}
            self._insert("log", row | values)
        return len(rows)

    def do_compare_logged(self, holes: object, after: int) -> Rows:
        ids: dict[tuple[str, str], list[int]] = {}
        for row in self._log():
            if row["record_id"] > after:
                ids.setdefault((row["table_name"], row["table_key"]), []).append(row["record_id"])
        return [(*name, numbers[0], numbers[-1]) for name, numbers in ids.items()]

    # --- operators, again

    def do_pause(self, holes: object, who: str, reason: str) -> int:
        return self._change("state", lambda row: True, paused_at=self.now, rested_at=None)

    def do_resume(self, holes: object) -> int:
        return self._change("state", lambda row: row["paused_at"] is not None, paused_at=None)

    def do_row_facts(self, holes: object, ids: str) -> Rows:
        event_ids = {row["record_id"]: row["event_id"] for row in self._rows("failed")}
        names = ("record_id", "status", "table_name", "table_key")
        return [(*(row[name] for name in names), event_ids.get(row["record_id"])) for row in self._among(ids)]


def _cells(row: Values) -> tuple[Any, ...]:
    return tuple(row[name] for name in COLUMNS)


def _by_column(row: Values) -> tuple[Any, ...]:
    return (row["record_id"], row["event_type"], 1, *(row[name] for name in COLUMNS[5:]))


def _size(row: Values) -> int:
    texts = (row["table_key"], row["table_key"], row["old_value"], row["new_value"])
    return sum(len(text.encode()) for text in texts if text is not None)
