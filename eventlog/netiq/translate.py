"""An exported configuration as settings of ours: what has a counterpart, and what has none and why."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.netiq.export import Export, StatedParameter, looks_secret
from eventlog.netiq.jdbc import JdbcAddress, read_jdbc
from eventlog.netiq.parameters import PARAMETERS, Parameter, Setting, Unneeded, find
from eventlog.opening.config import statements
from eventlog.opening.settings import naming_log
from eventlog.sql.dialects import DIALECTS, check_log_name
from eventlog.sql.names import log_named


class LeftOut(NamedTuple):
    """A parameter that was not translated; its value only if it is not secret."""

    name: str
    reason: str
    value: str | None = None

    def __str__(self) -> str:
        value = "" if self.value is None else f" = {quoted(self.value[:200])}"
        return f"{plain(self.name)}{value}: {self.reason}"


class SettingLine(NamedTuple):
    """A setting with a comment."""

    name: str
    value: Setting
    note: str = ""


class Translation(NamedTuple):
    lines: tuple[SettingLine, ...]
    assumed: tuple[SettingLine, ...]  # the original's defaults
    without: tuple[LeftOut, ...]
    url: str | None

    @property
    def settings(self) -> dict[str, Setting]:
        """All of them by their names."""
        url: dict[str, Setting] = {} if self.url is None else {"url": self.url}
        return url | {line.name: line.value for line in (*self.lines, *self.assumed)}


def translate(export: Export) -> Translation:
    """Return the counterpart of each parameter, or the reason why it has none."""
    draft = _Draft()
    for parameter in export.parameters:
        draft.add(parameter)
    for rule in _RULES:
        rule(draft)
    address = read_jdbc(export.server, export.user)
    nowhere = _NO_SOURCE if draft.value("publication-mode") == "compare" else _NO_LOG
    return Translation(
        tuple(draft.lines.values()),
        tuple(draft.assumed()),
        (*draft.without, *_of_address(export.server, address, nowhere)),
        None if address is None else address.url,
    )


class _Draft:
    """The translation so far: lines by the tags of their parameters."""

    def __init__(self) -> None:
        self.lines: dict[str, SettingLine] = {}
        self.without: list[LeftOut] = []
        self.doubtful: set[str] = set()  # tags of what is there, and could not be read

    def add(self, parameter: StatedParameter) -> None:
        """One parameter: a line, a reason, or nothing where it has no value."""
        counterpart = None if _is_foreign(parameter) else find(parameter.tag, parameter.display)
        try:
            reason = self._reason(parameter, counterpart)
            if reason is None and isinstance(counterpart, Parameter) and parameter.value:
                value = counterpart.read(parameter.value)
                if value is not None:
                    self.lines[counterpart.tag] = SettingLine(
                        counterpart.ours or counterpart.tag, value, _note(counterpart)
                    )
        except EventlogError as fault:
            reason = str(fault)
        if reason is not None:
            self._refuse(parameter, counterpart, reason)

    def leave_out(self, tag: str, reason: str) -> None:
        """Take a line back, if it is there."""
        line = self.lines.pop(tag, None)
        if line is not None:
            self.without.append(LeftOut(tag, reason, str(line.value)))

    def value(self, tag: str) -> Setting | None:
        """Return the value of a parameter; None if it means nothing."""
        line = self.lines.get(tag)
        return None if line is None else line.value

    def assumed(self) -> Iterator[SettingLine]:
        """Return the original's defaults for missing parameters."""
        names = {line.name for line in self.lines.values()}
        for counterpart in PARAMETERS:
            if (
                counterpart.default != "none"
                and not counterpart.ours
                and counterpart.tag not in names | self.doubtful
            ):
                value = counterpart.read(counterpart.default)
                assert value is not None
                yield SettingLine(counterpart.tag, value)

    def _reason(self, parameter: StatedParameter, counterpart: Parameter | Unneeded | None) -> str | None:
        if _is_secret(parameter):
            return "it may hold a secret, which is not carried over; set it in the environment"
        if counterpart is None:
            return (
                "of the Subscriber channel, which is not ours" if _is_foreign(parameter) else "no counterpart"
            )
        if parameter.unless:
            return f"not in force: its group is not set to {quoted(parameter.unless)}"
        if isinstance(counterpart, Unneeded):
            return counterpart.reason
        if counterpart.tag in self.lines:
            return "given more than once; the first holds"
        if re.search(r"~[\w.-]+~", parameter.value):
            return "it refers to a global configuration value that is not in the file: fill it in"
        return None

    def _refuse(
        self, parameter: StatedParameter, counterpart: Parameter | Unneeded | None, reason: str
    ) -> None:
        shown = isinstance(counterpart, Parameter) or (counterpart is not None and counterpart.shown)
        value = parameter.value if shown and not _is_secret(parameter) else None
        self.without.append(LeftOut(parameter.tag or parameter.display, reason, value))
        if isinstance(counterpart, Parameter) and not parameter.unless:
            self.doubtful |= {counterpart.tag} - self.lines.keys()


def _is_foreign(parameter: StatedParameter) -> bool:
    """Return whether a parameter belongs to the Subscriber channel, which has some of the same names."""
    return parameter.channel == "subscriber" or "subscriber" in parameter.display.lower()


def _is_secret(parameter: StatedParameter) -> bool:
    return parameter.secret or looks_secret(parameter.value)


def _scope(draft: _Draft) -> None:
    """Apply sync-filter, which selects the schema or the list."""
    scope = draft.value("sync-filter")
    if scope in ("list", "empty"):
        for tag in ("sync-schema", "include-table-filter", "exclude-table-filter"):
            draft.leave_out(tag, f"not in force: sync-filter is {scope}")
    if scope in ("schema", "empty"):
        draft.leave_out("sync-tables", f"not in force: sync-filter is {scope}")
    if {"sync-schema", "sync-tables"} <= draft.lines.keys():
        reason = "the original takes sync-schema or sync-tables, and both are given: both are published"
        draft.without.append(LeftOut("sync-filter", reason))


def _filters(draft: _Draft) -> None:
    if "sync-schema" not in draft.lines:
        for tag in ("include-table-filter", "exclude-table-filter"):
            draft.leave_out(
                tag, "not in force: it chooses among the tables of sync-schema, which is not given"
            )


def _log(draft: _Draft) -> None:
    """The log's name: qualified by sync-schema, as the original does."""
    line, schema = draft.lines.get("log-table"), draft.value("sync-schema")
    if line is None:
        reason = 'the export names no log, and the original has no default: "eventlog" is taken'
        draft.without.append(LeftOut("log-table", reason))
    elif schema is not None and "." not in str(line.value):
        note = "in the schema that sync-schema names, as in the original"
        draft.lines["log-table"] = line._replace(value=f"{schema}.{line.value}", note=note)
    try:
        check_log_name(str(draft.value("log-table") or "eventlog"))
    except EventlogError as fault:
        draft.leave_out("log-table", str(fault))


def _tables(draft: _Draft) -> None:
    if not {"sync-schema", "sync-tables"} & draft.lines.keys():
        reason = "the export names neither: what `eventlog track` installs is published"
        draft.without.append(LeftOut("sync-schema, sync-tables", reason))


def _children(draft: _Draft) -> None:
    """The original took the child tables of a list along."""
    if "sync-tables" in draft.lines:
        note = "child tables are published with their parents, as in the original"
        draft.lines["sync-children"] = SettingLine("sync-children", True, note)


def _statements(draft: _Draft) -> None:
    """Add a warning if a statement after a cycle names the log."""
    text, log = draft.value("post-poll-stmt"), str(draft.value("log-table") or "eventlog")
    post_poll_statements = statements(None if text is None else str(text))
    named = {
        statement
        for dialect in DIALECTS.values()
        for statement in naming_log(post_poll_statements, log_named(dialect, log))
    }
    if named:
        note = "it names the log, and may delete rows that are not published yet"
        draft.lines["post-poll-stmt"] = draft.lines["post-poll-stmt"]._replace(note=note)


def _deletion(draft: _Draft) -> None:
    """Report that handled rows are deleted if the export has no setting for it."""
    if draft.value("publication-mode") == "compare":
        line = SettingLine("delete-from-log", False, "triggerless: the original had no log to delete from")
        draft.lines.setdefault("delete-from-log", line)
    elif "delete-from-log" not in draft.lines.keys() | draft.doubtful:
        reason = (
            "the export leaves it out, which means yes in two editions of the manual, so it is true here. "
            "To keep handled rows, write false"
        )
        draft.without.append(LeftOut("delete-from-log", reason))


def _schedule(draft: _Draft) -> None:
    """Report an interval that a time of day replaces."""
    if {"polling-interval", "time-of-day"} <= draft.lines.keys():
        reason = "given together with time-of-day, which is in force: leave one of them out"
        draft.without.append(LeftOut("polling-interval", reason, str(draft.value("polling-interval"))))


def _references(draft: _Draft) -> None:
    """Set no references if the original read no foreign keys."""
    line = draft.lines.pop("minimal-metadata", None)
    if line is not None and line.value:
        note = "minimal-metadata: the original knew no foreign keys"
        draft.lines["enable-refs"] = SettingLine("enable-refs", False, note)


def _disabled(draft: _Draft) -> None:
    """A publisher that was off does not become one that runs."""
    reasons = {
        "disable": "disable: the original's publisher was off",
        "sync-filter": "sync-filter is empty: the original published nothing",
    }
    off = {"disable": True, "sync-filter": "empty"}
    reasons_given = [reasons[tag] for tag, value in off.items() if draft.value(tag) == value]
    needed = (*off, "publication-mode")
    reasons_given += [f"{tag} could not be read: look it up" for tag in needed if tag in draft.doubtful]
    draft.lines.pop("sync-filter", None)
    if reasons_given:
        draft.lines["disable"] = SettingLine("disable", True, "; ".join(reasons_given))


def _mode(draft: _Draft) -> None:
    """Return the mode: triggerless publication compares states, and its startup option needs it."""
    line = draft.lines.pop("publication-mode", None)
    if line is not None and line.value == "compare":
        note = (
            "triggerless; url holds the log and the receiver's state. If you may not create tables there, "
            "name that database in source-url and a database of your own in url (docs/compare.md)"
        )
        draft.lines["publication-mode"] = line._replace(note=note)
        return
    draft.leave_out("startup-option", "not in force: publication-mode is not 2")


def _zone(draft: _Draft) -> None:
    """The original's triggers write event_time in the database's own zone; triggerless it had no log."""
    if "publication-mode" in draft.lines:
        return
    note = "event_time as the original's triggers write it, in the database's zone"
    draft.lines["log-time"] = SettingLine("log-time", "local", note)


_RULES: tuple[Callable[[_Draft], None], ...] = (
    _scope,
    _filters,
    _log,
    _tables,
    _children,
    _statements,
    _deletion,
    _schedule,
    _references,
    _disabled,
    _mode,
    _zone,
)


def _note(parameter: Parameter) -> str:
    return f"{parameter.display[0]}{f'; {parameter.note}' if parameter.note else ''}"


_NO_LOG = "no database that eventlog publishes from; set url or EVENTLOG_URL"
_NO_SOURCE = (
    "no database that can hold a log: name it in source-url by its SQLAlchemy address, and a database of "
    "your own for the log in url (docs/compare.md)"
)


def _of_address(server: str, address: JdbcAddress | None, nowhere: str) -> Iterator[LeftOut]:
    """Return what the user must add to the database's address; `nowhere` if it is not one of ours."""
    if server and address is None:
        yield LeftOut("server", nowhere)
    for name in () if address is None else address.left_out:
        reason = (
            "a property of the JDBC URL: put it into the query of url, under its name in the Python driver"
        )
        yield LeftOut(
            name, reason if not looks_secret(name) else "a secret; set EVENTLOG_URL in the environment"
        )


def as_toml(source: str, translation: Translation) -> str:
    """Return the text of eventlog.toml; parameters that were not translated are comments at its end."""
    return "\n".join([*_toml_lines(source, translation), ""])


def _toml_lines(source: str, translation: Translation) -> Iterator[str]:
    yield f"# The parameters of {plain(source)}, carried over by `eventlog import-config`."
    yield ""
    if translation.url:
        yield "# The password belongs into the environment: EVENTLOG_URL is the same with user:password@."
        yield f"url = {quoted(translation.url)}"
        yield ""
    for name, value, note in translation.lines:
        yield f"# {plain(note)}"
        yield f"{name} = {_toml_value(value)}"
    if translation.assumed:
        yield ""
        yield "# These are not in the export; they are the original's defaults."
        yield from (f"{name} = {_toml_value(value)}" for name, value, _ in translation.assumed)
    if translation.without:
        yield ""
        yield "# Not carried over:"
        yield from (f"#   {without}" for without in translation.without)


def _toml_value(value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else quoted(value)


def quoted(text: str) -> str:
    """Return a TOML basic string, on one line whatever it holds."""
    return plain(json.dumps(text, ensure_ascii=False))


def plain(text: str) -> str:
    """Return a text without characters that would end a line or a comment."""
    return re.sub("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", lambda c: f"\\u{ord(c[0]):04x}", text)
