"""An exported configuration as eventlog.toml: what has a counterpart, and what has none and why."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator
from typing import NamedTuple
from urllib.parse import quote

from eventlog.errors import EventlogError
from eventlog.original.export import Export, Said
from eventlog.original.parameters import Parameter, Setting, find


class Without(NamedTuple):
    """A parameter that was not carried over."""

    said: Said
    reason: str

    def __str__(self) -> str:
        name = self.said.tag or self.said.display
        value = "" if self.said.secret else f" = {_quoted(self.said.value[:200])}"
        return f"{_plain(name)}{value}: {self.reason}"


class Translation(NamedTuple):
    settings: tuple[tuple[Parameter, Setting], ...]
    without: tuple[Without, ...]
    url: str | None


def translate(export: Export) -> Translation:
    """Each parameter has a counterpart or a reason why not."""
    settings: dict[str, tuple[Parameter, Setting]] = {}
    without: list[Without] = []
    for said in export.parameters:
        parameter = find(said.tag, said.display)
        reason = _reason(said, parameter, settings)
        if reason is None and parameter is not None and said.value:
            try:
                settings[parameter.tag] = parameter, parameter.read(said.value)
            except EventlogError as fault:
                reason = str(fault)
        if reason is not None:
            without.append(Without(said, reason))
    url = read_jdbc(export.server, export.user)
    if export.server and url is None:
        reason = "no database that eventlog knows; say url or EVENTLOG_URL"
        without.append(Without(Said("server", "", "", secret=True), reason))
    return Translation(tuple(settings.values()), tuple(without), url)


def write(source: str, translation: Translation) -> str:
    """The text of eventlog.toml."""
    return "\n".join([*_lines(source, translation), ""])


def read_jdbc(server: str, user: str) -> str | None:
    """The SQLAlchemy URL of a JDBC URL, with the user and without any password."""
    for pattern, form in _JDBC:
        if match := pattern.fullmatch(server):
            who = f"{quote(user, safe='')}@" if user else ""
            port = f":{match['port']}" if match["port"] else ""
            return form.format(who=who, host=match["host"], port=port, name=quote(match["name"]))
    return None


def _reason(said: Said, parameter: Parameter | None, known: Container[str]) -> str | None:
    if said.secret:
        return "a secret is not carried over; set it in the environment"
    if parameter is None:
        subscriber = said.channel == "subscriber"
        return "of the Subscriber channel, which is not ours" if subscriber else "no counterpart"
    if said.unless:
        return f"not in force: its group is not set to {_quoted(said.unless)}"
    if parameter.tag in known:
        return "given more than once; the first holds"
    if re.search(r"~[\w.-]+~", said.value):
        return "it refers to a global configuration value that is not in the file: fill it in"
    return None


def _lines(source: str, translation: Translation) -> Iterator[str]:
    yield f"# The parameters of {_plain(source)}, carried over by `eventlog import-config`."
    yield ""
    if translation.url:
        yield "# The password belongs into the environment: EVENTLOG_URL is the same with user:password@."
        yield f"url = {_quoted(translation.url)}"
        yield ""
    for parameter, value in translation.settings:
        yield f"# {parameter.display[0]}{f'; {parameter.note}' if parameter.note else ''}"
        yield f"{parameter.tag} = {_toml(value)}"
    if translation.without:
        yield ""
        yield "# Not carried over:"
        yield from (f"#   {without}" for without in translation.without)


def _toml(value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _quoted(value)


def _quoted(text: str) -> str:
    """A TOML basic string, on one line whatever it holds."""
    return _plain(json.dumps(text, ensure_ascii=False))


def _plain(text: str) -> str:
    return re.sub("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", lambda c: f"\\u{ord(c[0]):04x}", text)


_HOST = r"(?P<host>[\w.-]+)(?::(?P<port>\d{1,5}))?"
_REST = r"(?:\?.*)?"
_JDBC = (
    (
        re.compile(rf"jdbc:oracle:thin:@//{_HOST}/(?P<name>[\w.$#-]+)", re.ASCII),
        "oracle+oracledb://{who}{host}{port}/?service_name={name}",
    ),
    (
        re.compile(rf"jdbc:oracle:thin:@{_HOST}:(?P<name>[\w.$#-]+)", re.ASCII),
        "oracle+oracledb://{who}{host}{port}/{name}",
    ),
    (
        re.compile(rf"jdbc:postgresql://{_HOST}/(?P<name>[\w.$#-]+){_REST}", re.ASCII),
        "postgresql+psycopg://{who}{host}{port}/{name}",
    ),
    (
        re.compile(rf"jdbc:(?:mysql|mariadb)://{_HOST}/(?P<name>[\w.$#-]+){_REST}", re.ASCII),
        "mysql+pymysql://{who}{host}{port}/{name}",
    ),
)
