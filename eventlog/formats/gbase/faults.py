"""The faults of a stream, and the errors of the capture API by number.

The manual gives names and warns that numbers may change: the server's `syscdcv1:syscdcerrcodes` decides.
These numbers were seen on installations.
"""

from __future__ import annotations

from typing import Final

from eventlog.core.errors import EventlogError

SHOWN: Final = 40  # characters of a value that a message shows


class Corrupt(EventlogError):
    """byte {0}: {1} is {2}: {3}"""

    @property
    def offset(self) -> int:
        return int(self.args[0])


class BadSchema(EventlogError):
    """schema text: {0}"""


class SessionOver(EventlogError):
    """the server ended the capture session with {0}"""


class BadDump(EventlogError):
    """hex dump: line {0}: {1}"""


def as_hex(data: bytes) -> str:
    """Return bytes as messages show them."""
    text = data[: SHOWN // 2].hex()
    return f"{text}... ({len(data)} bytes)" if len(data) > SHOWN // 2 else text or "empty"


# --- the errors of the capture API, by number

ERRORS: Final[dict[int, tuple[str, str]]] = {
    -83701: ("CDC_E_NOCDCDB", "there is no database syscdcv1"),
    -83702: ("CDC_E_APIVERS", "the server does not know this version of the API"),
    -83703: ("CDC_E_NODB", "there is no such database"),
    -83704: ("CDC_E_DBNOTLOGGED", "the database is not logged"),
    -83705: ("CDC_E_NOTAB", "there is no such table"),
    -83706: ("CDC_E_TABPROPERTIES", "a table of this kind cannot be captured"),
    -83707: ("CDC_E_NOCOL", "there is no such column, or its type cannot be captured"),
    -83708: ("CDC_E_NOSESS", "there is no such session"),
    -83709: ("CDC_E_NOREOPEN", "the session cannot be opened again"),
    -83710: ("CDC_E_TABCAPTURED", "the table is being captured: end its capture first"),
    -83711: ("CDC_E_TABNOTCAPTURED", "the table is not being captured"),
    -83712: ("CDC_E_ARGNULL", "an argument is null"),
    -83713: (
        "CDC_E_LSN",
        "no log file on the disk has this position: restart from 0 and load the tables again",
    ),
    -83714: ("CDC_E_DIRECTION", "the session does not read in this direction"),
    -83715: ("CDC_E_DUPLSESS", "there is such a session already"),
    -83720: ("CDC_E_ARG", "an argument is wrong"),
    **{-83720 - n: (f"CDC_E_ARG{n}", f"argument {n} is wrong") for n in range(1, 7)},
    -83790: ("-83790", "a log record could not be read; a captured table may have been dropped"),
    -83792: ("CDC_E_MUSTCLOSE", "the session is no longer valid: close it"),
}


def error_name(code: int) -> str:
    """Return a code with its name and its meaning, if there is one."""
    name, meaning = ERRORS.get(code, ("", "see syscdcv1:syscdcerrcodes"))
    return f"{code} {name} ({meaning})" if name != str(code) else f"{code} ({meaning})"
