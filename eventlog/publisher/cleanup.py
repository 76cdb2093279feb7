"""Reads SQL of the operator as far as it must be known that it leaves pending rows of the log alone.

A statement that names the log, or a table beside it, is one of these as a whole, or refused:

    delete from <log> where <record_id> = 1            delete from <log> where <status> = 'S'
    delete from <log> where <record_id> in (1, 2)      delete from <log> where <status> in ('S', 'W')
                                                       … and <event_time> < now() - interval '7 days'

The expression holds numbers, texts, arithmetic and the database's own words for times, and nothing else.
What one database reads as a comment, a string or an operator and another one does not is not read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.sql.names import COMPANIONS, Log

HANDLED = frozenset("SW")  # letters of rows that are done, and did not fail

_TOKEN = re.compile(
    r"""(?P<gap>\s+|--(?=\s|$)[^\n]*|/\*(?!M?!)(?:(?!/\*|\*/).)*\*/)
      | (?P<string>'(?:[^'\\]|'')*')
      | (?P<quoted>"(?:[^"\\]|"")+"|`(?:[^`\\]|``)+`)
      | (?P<number>\d+(?:\.\d+)?(?![\w$]))
      | (?P<name>[^\W\d][\w$#]*)
      | (?P<mark>::|[=<>(),.+*/-])""",
    re.VERBOSE | re.DOTALL,
)
# names that PostgreSQL decodes first; texts of Oracle that a quote does not end
_HIDDEN = re.compile(r"(?<![\w$#])(?:u&[\"']|n?q')", re.IGNORECASE)

_UNITS = frozenset(("microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"))
_TYPES = frozenset(("timestamp", "timestamptz", "datetime", "date", "time", "interval"))
_MOMENTS = {
    "postgresql": "now current_timestamp localtimestamp current_date clock_timestamp statement_timestamp"
    " transaction_timestamp date_trunc timezone make_interval",
    "oracle": "sysdate systimestamp current_timestamp localtimestamp current_date sys_extract_utc trunc"
    " add_months numtodsinterval numtoyminterval to_dsinterval to_timestamp to_date",
    "mysql": "now sysdate current_timestamp localtimestamp current_date curdate utc_timestamp utc_date"
    " date_sub date_add subdate adddate convert_tz timestamp date from_unixtime unix_timestamp",
}
_MOMENTS["mariadb"] = _MOMENTS["mysql"]
_OPENS_ROUTINE = ("call", "exec", "execute", "do", "begin", "declare")
_BEFORE_COLUMNS = ("into", "table", "join", "from", "update", "on", "as")
_BEFORE_LISTS = frozenset(("in", "values", "value", "and", "or", "not", "on", "as", "using", "over", "key"))
_NAMES = ("name", "quoted")
_DEEPEST = 50  # parentheses within each other
_AS_KEPT: dict[str, Callable[[str, str], bool]] = {  # whether a name without quotes is one of the catalogue
    "lower": lambda text, name: text.lower() == name,
    "upper": lambda text, name: text.upper() == name,
    "exact": lambda text, name: text.lower() == name.lower(),
}


class _NotThis(EventlogError):
    """another statement than those that may clean up"""


class Token(NamedTuple):
    """A word, text, number or mark of a statement."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """A word without quotes in lower case; nothing for everything else."""
        return self.text.lower() if self.kind == "name" else ""


_END = Token("end", "")


def read_tokens(statement: str) -> list[Token] | None:
    """The tokens of a statement without its comments; None where something in it is not read here."""
    tokens, place = [], 0
    while found := _TOKEN.match(statement, place):
        place = found.end()
        if found.lastgroup is not None and found.lastgroup != "gap":
            tokens.append(Token(found.lastgroup, found[0]))
    return tokens if place == len(statement) else None


def names_log(statement: str, log: Log) -> bool:
    """Whether the log or a table beside it is named, be it in a text; in a comment where not all is read."""
    tokens = read_tokens(statement)
    if _HIDDEN.search(statement):
        return True
    told = statement if tokens is None else " ".join(token.text for token in tokens)
    names = "|".join(
        re.escape(name) for name in (log.table, *map(log.beside, (*COMPANIONS, "rows", "sequence")))
    )
    return re.search(rf"(?<![\w$#])(?:{names})(?![\w$#])", told, re.IGNORECASE) is not None


def cleans_up(statement: str, log: Log) -> bool:
    """Whether it is, as a whole, one of the statements that may clean up the log."""
    try:
        _Parser(read_tokens(statement) or (), log).statement()
    except _NotThis:
        return False
    return True


def cleaned_rows(statement: str, log: Log) -> str | None:
    """The condition of the rows that a statement cleans up, None of another statement."""
    if not (names_log(statement, log) and cleans_up(statement, log)):
        return None
    place = 0
    while (found := _TOKEN.match(statement, place)) and found[0].lower() != "where":
        place = found.end()
    return statement[found.end() :] if found else None


def calls_routine(statement: str, log: Log) -> bool:
    """Whether it runs what cannot be seen here: a routine, or words that are not read."""
    tokens = read_tokens(statement)
    if tokens is None:
        return True
    if tokens and tokens[0].word in _OPENS_ROUTINE:
        return True
    known = _BEFORE_LISTS.union(_MOMENTS[log.dialect.name].split())
    return any(name.word not in known for name in _called(tokens))


def _called(tokens: Sequence[Token]) -> Iterator[Token]:
    """The names before a parenthesis, but for those of tables whose columns stand in it."""
    for before, name, after in zip([_END, *tokens], tokens, tokens[1:], strict=False):
        if name.kind in _NAMES and after.text == "(" and before.word not in _BEFORE_COLUMNS:
            yield name


class _Parser:
    """Takes tokens from the left; _NotThis where another one stands than may."""

    def __init__(self, tokens: Sequence[Token], log: Log) -> None:
        self._tokens = [*tokens, _END, _END]
        self._at = 0
        self._depth = 0
        self._log = log
        self._moments = frozenset(_MOMENTS[log.dialect.name].split())

    def statement(self) -> None:
        self._words("delete", "from")
        if self._second.text == ".":
            self._take(self._next.kind in _NAMES)
            self._take(True)
        self._take(self._names(self._log.dialect.fold(self._log.table)))
        self._words("where")
        if self._names(self._log.column("record_id")):
            self._take(True)
            self._among(lambda token: token.text.isdecimal())
        else:
            self._take(self._names(self._log.column("status")))
            self._among(lambda token: token.kind == "string" and token.text[1:-1] in HANDLED)
            if self._next.word == "and":
                self._words("and")
                self._take(self._names(self._log.column("event_time")))
                self._mark("<")
                self._expression()
        self._take(self._next is _END)

    def _among(self, is_value: Callable[[Token], bool]) -> None:
        """`= value` or `in (value, …)`."""
        if self._next.text == "=":
            self._mark("=")
            self._take(is_value(self._next))
            return
        self._words("in")
        self._mark("(")
        self._take(is_value(self._next))
        while self._next.text == ",":
            self._mark(",")
            self._take(is_value(self._next))
        self._mark(")")

    def _expression(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotThis
        self._operand()
        while self._next.text in ("+", "-", "*", "/"):
            self._take(True)
            self._operand()
        self._depth -= 1

    def _operand(self) -> None:
        self._plain_operand()
        while self._next.text == "::" or self._next.word == "at":
            if self._next.text == "::":
                self._mark("::")
                self._type()
            else:
                self._words("at", "time", "zone")
                self._plain_operand()

    def _plain_operand(self) -> None:
        word = self._next.word
        if self._next.text == "(":
            self._mark("(")
            self._expression()
            self._mark(")")
        elif word == "cast":
            self._cast()
        elif word in _TYPES and self._second.kind in ("string", "number"):
            self._literal()
        elif word in self._moments:
            self._take(True)
            if self._next.text == "(":
                self._arguments()
        else:
            self._take(self._next.kind in ("string", "number"))

    def _arguments(self) -> None:
        """Nothing or expressions, in parentheses."""
        self._mark("(")
        while self._next.text != ")":
            self._expression()
            if self._next.text != ")":
                self._mark(",")
        self._mark(")")

    def _literal(self) -> None:
        """`timestamp '…'`, or an interval with or without its unit."""
        self._take(True)
        self._take(True)
        if self._next.word in _UNITS:
            self._take(True)

    def _cast(self) -> None:
        self._words("cast")
        self._mark("(")
        self._expression()
        self._words("as")
        self._type()
        self._mark(")")

    def _type(self) -> None:
        self._take(self._next.word in _TYPES)
        if self._next.text == "(":
            self._mark("(")
            self._take(self._next.kind == "number")
            self._mark(")")
        if self._next.word in ("with", "without"):
            self._take(True)
            self._words("time", "zone")

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    @property
    def _second(self) -> Token:
        return self._tokens[self._at + 1]

    def _take(self, may: bool) -> None:
        if not may:
            raise _NotThis
        self._at += 1

    def _words(self, *words: str) -> None:
        for word in words:
            self._take(self._next.word == word)

    def _mark(self, text: str) -> None:
        self._take(self._next == ("mark", text))

    def _names(self, name: str) -> bool:
        """Whether the next token is this name of the catalogue."""
        kind, text = self._next
        mark = self._log.dialect.quote_mark
        if kind == "quoted":
            return text[0] == mark and text[1:-1].replace(mark * 2, mark) == name
        return kind == "name" and _AS_KEPT[self._log.dialect.plain_names](text, name)
