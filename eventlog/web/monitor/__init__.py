"""The pages of a running publisher: metrics and health on a small HTTP port."""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from eventlog.core.errors import Misuse
from eventlog.core.settings import setting
from eventlog.files.small_files import read_secrets
from eventlog.web import is_loopback

CLOSING = "set monitor-host to 127.0.0.1, or let a proxy or a firewall decide who reaches it"
SHORTEST_TOKEN = 16  # characters
WHO = "status page"  # on record for each person who has the one token


class TokensFileOpen(Misuse):
    """{0}: other users may {1} the tokens in it; its owner must be the publisher's user: chmod 600 {0}"""


class TokenLineWrong(Misuse):
    """{0} line {1}: expected a name, a blank and a token without blanks"""


class TokenShort(Misuse):
    """a token of {0} characters can be guessed: give it {1} or more, as `openssl rand -hex 16` does"""


def _demand_long(token: str) -> None:
    """Raise TokenShort for a token that could be guessed; the error does not quote it."""
    if 0 < len(token) < SHORTEST_TOKEN:
        raise TokenShort(len(token), SHORTEST_TOKEN)


def read_tokens(path: str) -> list[tuple[str, str]]:
    """Return the names and tokens of a file; none if no file is named.

    Raise Misuse if others may read or change it, or for a wrong line, which the error does not quote.
    """
    if not path:
        return []
    lines = read_secrets(path)
    if os.name == "posix":
        status = os.stat(path)
        if status.st_mode & stat.S_IROTH:
            raise TokensFileOpen(path, "read")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or status.st_uid not in (0, os.geteuid()):
            raise TokensFileOpen(path, "change")
    return [_name_and_token(line, path, number) for number, line in lines]


def _check_tokens(path: str) -> None:
    """Raise Misuse for a file of tokens that cannot be used at the start."""
    for _, token in read_tokens(path):
        _demand_long(token)


def _name_and_token(line: str, path: str, number: int) -> tuple[str, str]:
    words = line.split()
    if len(words) != 2 or not line.isprintable():
        raise TokenLineWrong(path, number)
    return words[0], words[1]


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """The settings of the status page."""

    monitor_port: int = setting(
        0,
        "the port of the status page, /metrics, /healthz and /readyz; 0: none",
        metavar="PORT",
        within=(0, 65_535),
    )
    monitor_host: str = setting("127.0.0.1", "the address that the port listens at", metavar="HOST")
    monitor_token: str | None = setting(
        None,
        "its holder may redrive, skip and resume on the status page; better set it in the environment",
        metavar="TOKEN",
        check=_demand_long,
    )
    monitor_tokens_file: str | None = setting(
        None,
        "a file with a name and a token in each line: who has the token acts under the name",
        metavar="FILE",
        check=_check_tokens,
    )

    @property
    def may_change(self) -> bool:
        """Return whether anyone may change something on the status page."""
        return bool(self.monitor_token or self.monitor_tokens_file)

    @property
    def readers(self) -> str:
        """The clause about readers on other machines; empty if there are none."""
        if not self.monitor_port or is_loopback(self.monitor_host):
            return ""
        place = f"{self.monitor_host}, port {self.monitor_port}"
        return f"anyone who reaches {place} may read the status page, without a token"

    def person(self, token: str) -> str | None:
        """Return who has a token, None if no person has it. The file is read anew, so a line may be removed.

        All tokens are compared, each in constant time.
        """
        matching = [
            name
            for name, person_token in self._tokens()
            if hmac.compare_digest(token.encode(), person_token.encode())
        ]
        return next(iter(matching), None)

    def _tokens(self) -> Iterator[tuple[str, str]]:
        if self.monitor_tokens_file:
            yield from read_tokens(self.monitor_tokens_file)
        if self.monitor_token:
            yield WHO, self.monitor_token
