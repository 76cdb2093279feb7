"""Checks the operator's SQL, which must leave pending rows of the log alone.

A statement that names the log, or a table of ours, must be one of these as a whole; others are refused:

    delete from <log> where <record_id> = 1            delete from <log> where <status> = 'S'
    delete from <log> where <record_id> in (1, 2)      delete from <log> where <status> in ('S', 'W')
                                                       … and <event_time> < now() - interval '7 days'

The expression contains numbers, texts, arithmetic and the database's own words for times, and nothing else.
A text that is a comment, a string or an operator in some databases only is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

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

_UNITS = ("microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_TYPES = ("timestamp", "timestamptz", "datetime", "date", "time", "interval")
_TIME_WORDS = frozenset((*_UNITS, *_TYPES, "cast", "as", "at", "zone", "with", "without"))
_ARITHMETIC = frozenset(("(", ")", ",", "+", "-", "*", "/", "::"))
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
_AS_KEPT: dict[str, Callable[[str, str], bool]] = {  # whether a name without quotes is one of the catalogue
    "lower": lambda text, name: text.lower() == name,
    "upper": lambda text, name: text.upper() == name,
    "exact": lambda text, name: text.lower() == name.lower(),
}


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
    """Return the tokens of a statement without its comments; None where something in it is not read here."""
    tokens, place = [], 0
    while match := _TOKEN.match(statement, place):
        place = match.end()
        if match.lastgroup is not None and match.lastgroup != "gap":
            tokens.append(Token(match.lastgroup, match[0]))
    return tokens if place == len(statement) else None


def names_log(statement: str, log: Log) -> bool:
    """Return whether the log or a table of ours is named, even in a text or an unreadable comment."""
    tokens = read_tokens(statement)
    if _HIDDEN.search(statement):
        return True
    text = statement if tokens is None else " ".join(token.text for token in tokens)
    names = "|".join(
        re.escape(name) for name in (log.table, *map(log.beside, (*COMPANIONS, "rows", "sequence")))
    )
    return re.search(rf"(?<![\w$#])(?:{names})(?![\w$#])", text, re.IGNORECASE) is not None


def cleans_up(statement: str, log: Log) -> bool:
    """Return whether the whole statement is one of those that may clean up the log."""
    tokens = [*(read_tokens(statement) or ()), *[_END] * 8]
    if tokens[2].kind in _NAMES and tokens[3].text == ".":
        del tokens[2:4]
    delete, origin, table, where, column, *rest = tokens
    if (delete.word, origin.word, where.word) != ("delete", "from", "where"):
        return False
    if not _is_name(table, log.dialect.fold(log.table), log):
        return False
    values, rest = _values(rest)
    if _is_name(column, log.column("record_id"), log):
        return all(value.text.isdecimal() for value in values) and rest[0] is _END
    handled = all(value.kind == "string" and value.text[1:-1] in HANDLED for value in values)
    if not (handled and _is_name(column, log.column("status"), log)):
        return False
    conjunction, time, mark, *moment = rest
    is_older = _is_name(time, log.column("event_time"), log) and mark.text == "<"
    return conjunction is _END or (conjunction.word == "and" and is_older and _is_moment(moment, log))


def _values(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """Return the values of `= value` or `in (value, …)`, and the tokens after them."""
    if tokens[0].text == "=":
        return tokens[1:2], tokens[2:]
    texts = [token.text for token in tokens]
    end = texts.index(")") if ")" in texts else 0
    if tokens[0].word != "in" or texts[1] != "(" or set(texts[3:end:2]) - {","} or end % 2 == 0:
        return [_END], tokens
    return tokens[2:end:2], tokens[end + 1 :]


def _is_moment(tokens: Sequence[Token], log: Log) -> bool:
    """Return whether an expression holds numbers, texts, arithmetic and the database's own words for times,
    and nothing else. The database checks its grammar.
    """
    words = _TIME_WORDS.union(_MOMENTS[log.dialect.name].split())
    expression = list(takewhile(lambda token: token is not _END, tokens))
    depths = list(accumulate({"(": 1, ")": -1}.get(token.text, 0) for token in expression))
    values = [token for token in expression if token.kind in ("string", "number") or token.word in words]
    marks = [token for token in expression if token.kind == "mark" and token.text in _ARITHMETIC]
    begins = bool(values) and (expression[0].text == "(" or expression[0] is values[0])
    return begins and len(values) + len(marks) == len(expression) and min(depths) >= 0 == depths[-1]


def cleaned_rows(statement: str, log: Log) -> str | None:
    """Return the condition of the rows that a statement cleans up, None of another statement."""
    if not (names_log(statement, log) and cleans_up(statement, log)):
        return None
    place = 0
    while (match := _TOKEN.match(statement, place)) and match[0].lower() != "where":
        place = match.end()
    return statement[match.end() :] if match else None


def calls_routine(statement: str, log: Log) -> bool:
    """Return whether the statement calls a routine, or has words that are not read."""
    tokens = read_tokens(statement)
    if tokens is None:
        return True
    if tokens and tokens[0].word in _OPENS_ROUTINE:
        return True
    harmless = _BEFORE_LISTS.union(_MOMENTS[log.dialect.name].split())
    return any(name.word not in harmless for name in _called(tokens))


def _called(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the names before a parenthesis, except tables followed by their columns."""
    for before, name, after in zip([_END, *tokens], tokens, tokens[1:], strict=False):
        if name.kind in _NAMES and after.text == "(" and before.word not in _BEFORE_COLUMNS:
            yield name


def _is_name(token: Token, name: str, log: Log) -> bool:
    """Return whether a token is this name of the catalogue."""
    kind, text = token
    mark = log.dialect.quote_mark
    if kind == "quoted":
        return text[0] == mark and text[1:-1].replace(mark * 2, mark) == name
    return kind == "name" and _AS_KEPT[log.dialect.plain_names](text, name)
