"""An exported configuration as settings of ours: what has a counterpart, and what has none and why.

The original is the JDBC driver of NetIQ Identity Manager.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from eventlog.core.errors import EventlogError
from eventlog.core.redaction import one_line
from eventlog.netiq.export import Export, StatedParameter, looks_secret
from eventlog.netiq.parameters import (
    PARAMETERS,
    Parameter,
    Setting,
    Unneeded,
    find,
    plain_word,
    read_setting,
)


class LeftOut(NamedTuple):
    """A parameter that was not translated; its value only if it is not secret."""

    name: str
    reason: str
    value: str | None = None

    def __str__(self) -> str:
        value = "" if self.value is None else f" = {quoted(self.value[:200])}"
        return one_line(f"{self.name}{value}: {self.reason}")


class SettingLine(NamedTuple):
    """A setting with a comment."""

    name: str
    value: Setting
    note: str = ""


class Translation(NamedTuple):
    lines: tuple[SettingLine, ...]
    assumed: tuple[SettingLine, ...]  # the original's defaults
    without: tuple[LeftOut, ...]


def translate(export: Export) -> Translation:
    """Return the counterpart of each parameter, or the reason why it has none."""
    draft = _Draft()
    draft.add_server(export.server, export.user)
    for parameter in export.parameters:
        draft.add(parameter)
    for rule in _RULES:
        rule(draft)
    return Translation(tuple(draft.lines.values()), tuple(draft.assumed()), tuple(draft.without))


class _Draft:
    """The translation so far: lines by the names of their settings, texts by the tags of parameters."""

    def __init__(self) -> None:
        self.lines: dict[str, SettingLine] = {}
        self.texts: dict[str, str] = {}  # in force, and read
        self.without: list[LeftOut] = []
        self.unreadable: set[str] = set()  # tags of parameters that are there, and could not be read

    def add_server(self, server: str, user: str) -> None:
        """Add the database of a JDBC URL, and the names of its properties."""
        url, properties = read_jdbc(server, user)
        if url:
            self.lines["url"] = SettingLine("url", url, _URL_NOTE)
        elif server:
            self.without.append(LeftOut("server", _NO_DATABASE))
        self.without += [LeftOut(name, _HIDDEN if looks_secret(name) else _PROPERTY) for name in properties]

    def add(self, parameter: StatedParameter) -> None:
        """Add a line for a parameter, or a reason, or nothing where it has no value."""
        counterpart = None if _is_foreign(parameter) else find(parameter.tag, parameter.display)
        try:
            reason = self._reason(parameter, counterpart)
            if reason is None and isinstance(counterpart, Parameter) and parameter.value:
                self._translate(counterpart, parameter.value)
        except EventlogError as fault:
            reason = str(fault)
        if reason is not None:
            self._refuse(parameter, counterpart, reason)

    def leave_out(self, tag: str, reason: str) -> None:
        """Take a line back, if it is there."""
        line = self.lines.pop(tag, None)
        if line is not None:
            self.without.append(LeftOut(tag, reason, str(line.value)))

    def assumed(self) -> Iterator[SettingLine]:
        """Return the original's defaults for missing parameters."""
        for parameter in PARAMETERS:
            is_decided = parameter.tag in self.lines or parameter.tag in self.unreadable
            if parameter.default != "none" and not parameter.ours and not is_decided:
                value = parameter.read(parameter.default)
                if value is not None:
                    yield SettingLine(parameter.tag, value)

    def _translate(self, parameter: Parameter, text: str) -> None:
        value = parameter.read(text)
        self.texts[parameter.tag] = text
        is_decided = parameter.tag in self.lines and not parameter.ours  # by one that overrides it
        if value is not None and not is_decided:
            title = parameter.display.partition(",")[0]
            note = f"{title}; {parameter.note}" if parameter.note else title
            self.lines[parameter.setting] = SettingLine(parameter.setting, value, note)

    def _reason(self, parameter: StatedParameter, counterpart: Parameter | Unneeded | None) -> str | None:
        if _is_secret(parameter):
            return "it may hold a secret, which is not carried over; set it in the environment"
        if _is_foreign(parameter):
            return "of the Subscriber channel, which is not ours"
        if counterpart is None:
            return "no counterpart"
        if parameter.unless:
            return f"not in force: its group is not set to {quoted(parameter.unless)}"
        if isinstance(counterpart, Unneeded):
            return counterpart.reason
        if counterpart.tag in self.texts:
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
            self.unreadable |= {counterpart.tag} - self.texts.keys()


def _is_foreign(parameter: StatedParameter) -> bool:
    """Return whether a parameter belongs to the Subscriber channel, which has some of the same names."""
    return parameter.channel == "subscriber" or "subscriber" in parameter.display.lower()


def _is_secret(parameter: StatedParameter) -> bool:
    return parameter.secret or looks_secret(parameter.value)


def _scope(draft: _Draft) -> None:
    """Apply sync-filter, which selects the schema or the list."""
    scope = plain_word(draft.texts.get("sync-filter", ""))
    if scope in ("list", "empty"):
        draft.leave_out("sync-schema", f"not in force: sync-filter is {scope}")
    if scope in ("schema", "empty"):
        draft.leave_out("sync-tables", f"not in force: sync-filter is {scope}")
    if "sync-schema" not in draft.lines:
        for tag in ("include-table-filter", "exclude-table-filter"):
            draft.leave_out(tag, "not in force: it chooses among the tables of sync-schema")
    elif "sync-tables" in draft.lines:
        reason = "the original takes sync-schema or sync-tables, and both are given: both are published"
        draft.without.append(LeftOut("sync-filter", reason))


def _log(draft: _Draft) -> None:
    """Put the log into the schema of sync-schema, as the original does."""
    line, schema = draft.lines.get("log-table"), draft.lines.get("sync-schema")
    if line is None:
        reason = 'the export names no log, and the original has no default: "eventlog" is taken'
        draft.without.append(LeftOut("log-table", reason))
    elif schema is not None and "." not in str(line.value):
        try:
            qualified = read_setting("log-table", f"{schema.value}.{line.value}")
            draft.lines["log-table"] = line._replace(value=qualified)
        except EventlogError as fault:
            draft.leave_out("log-table", str(fault))


def _children(draft: _Draft) -> None:
    """Publish the child tables of a list, as the original did."""
    if "sync-tables" in draft.lines:
        note = "child tables are published with their parents, as in the original"
        draft.lines["sync-children"] = SettingLine("sync-children", True, note)


def _disabled(draft: _Draft) -> None:
    """Disable a publisher if the export may have disabled it."""
    unreadable = [tag for tag in ("disable", "sync-filter", "publication-mode") if tag in draft.unreadable]
    if unreadable:
        note = f"{', '.join(unreadable)} could not be read: look it up"
        draft.lines["disable"] = SettingLine("disable", True, note)


def _mode(draft: _Draft) -> None:
    """Add what depends on whether triggers wrote a log, or there was none to delete from."""
    is_triggerless = "publication-mode" in draft.lines  # with triggers it becomes no line
    if is_triggerless:
        line = SettingLine("delete-from-log", False, "triggerless: the original had no log to delete from")
        draft.lines.setdefault("delete-from-log", line)
        return
    draft.leave_out("startup-option", "not in force: publication-mode is not 2")
    note = "event_time as the original's triggers write it, in the database's zone"
    draft.lines["log-time"] = SettingLine("log-time", "local", note)
    if "delete-from-log" not in draft.lines.keys() | draft.unreadable:
        reason = (
            "the export leaves it out, which means yes in two editions of the manual, so it is true here. "
            "To keep handled rows, write false"
        )
        draft.without.append(LeftOut("delete-from-log", reason))


_RULES: tuple[Callable[[_Draft], None], ...] = (_scope, _log, _children, _disabled, _mode)

_URL_NOTE = "The password belongs into the environment: EVENTLOG_URL is the same with user:password@."
_NO_DATABASE = (
    "no database that eventlog publishes from; set url or EVENTLOG_URL. If the original was triggerless, "
    "name it in source-url by its SQLAlchemy address, and a database of your own in url "
    "(docs/publish/elsewhere.md)"
)
_PROPERTY = "a property of the JDBC URL: put it into the query of url, under its name in the Python driver"
_HIDDEN = "a secret; set EVENTLOG_URL in the environment"


# --- the server

_HOST = r"(?P<host>[\w.-]+|\[[\da-fA-F:]+\])(?::(?P<port>\d{1,5}))?"
_WHO = r"(?:(?P<user>[^/:@\s]*)[/:](?P<word>[^@\s]*)@)?"
_NAME = r"(?P<name>[\w.$#-]+)(?P<properties>[?;].*)?"
_ORACLE = re.compile(
    r"jdbc:oracle:(?:thin|oci8?):(?:(?P<user>[^/@\s]+)/(?P<word>[^@\s]*))?"
    rf"@(?:(?:tcps?:)?//)?{_HOST}(?P<mark>[:/]){_NAME}",
    re.ASCII,
)
_SERVER = re.compile(rf"jdbc:(?P<system>postgresql|mariadb|mysql):(?://{_WHO}{_HOST}/)?{_NAME}", re.ASCII)
_DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql", "mysql": "mysql+pymysql"}


def read_jdbc(server: str, user: str) -> tuple[str, tuple[str, ...]]:
    """Return the SQLAlchemy URL of a JDBC URL without its password, and the names of its properties.

    The URL is empty for a database that eventlog does not publish from.
    """
    match = _ORACLE.fullmatch(server.strip()) or _SERVER.fullmatch(server.strip())
    if match is None:
        return "", ()
    fields = {name: text or "" for name, text in match.groupdict().items()}
    who, port = quote(user or fields["user"], safe=""), fields["port"]
    place = f"{who and f'{who}@'}{fields['host'] or 'localhost'}{port and f':{port}'}/"
    driver = _DRIVERS.get(fields.get("system", ""), "oracle+oracledb")
    query = "?service_name=" if fields.get("mark") == "/" else ""
    properties = [part.partition("=")[0] for part in re.split("[?&;]", fields["properties"])]
    names = [*(["password"] if fields["word"] else []), *filter(None, properties)]
    return f"{driver}://{place}{query}{quote(fields['name'], safe='')}", tuple(names)


# --- the settings file


def as_toml(source: str, translation: Translation) -> str:
    """Return the text of eventlog.toml; parameters that were not translated are comments at its end."""
    return "\n".join([*_toml_lines(source, translation), ""])


def _toml_lines(source: str, translation: Translation) -> Iterator[str]:
    yield f"# The parameters of {one_line(source)}, carried over by `eventlog import-config`."
    yield ""
    for line in translation.lines:
        yield f"# {line.note}"
        yield _toml_line(line)
    if translation.assumed:
        yield ""
        yield "# These are not in the export; they are the original's defaults."
        yield from map(_toml_line, translation.assumed)
    if translation.without:
        yield ""
        yield "# Not carried over:"
        yield from (f"#   {without}" for without in translation.without)


def _toml_line(line: SettingLine) -> str:
    value = str(line.value).lower() if isinstance(line.value, int) else quoted(line.value)
    return f"{line.name} = {value}"


def quoted(text: str) -> str:
    """Return a TOML basic string, on one line whatever it holds."""
    unseen = "[\x7f-\x9f\u2028\u2029\ud800-\udfff]"
    return re.sub(unseen, lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
