"""How a database writes names, and which of them it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eventlog.core.errors import EventlogError

_SHOWN = 60  # characters of a name in a message


class IllegalName(EventlogError):
    """{0!r} cannot name anything in {1}: {2}"""


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The rules for names: how they are quoted, kept and limited."""

    plain: str  # the case in which names without quotes are kept: lower, upper or exact
    longest: int  # the most bytes of a name in UTF-8, or characters; our own names count bytes
    quote_mark: str = '"'  # around a name; doubled within it
    counts_characters: bool = False  # in the length of a name
    barred: str = ""  # characters that no name contains
    basic: bool = False  # names have no characters beyond U+FFFF
    trims: bool = False  # names do not end with a blank
    taken: frozenset[str] = frozenset()  # columns that every table has already, in lower case
    twins: bool = True  # the names of two columns may differ by case alone
    own_schemas: tuple[str, ...] = ()  # the beginnings of schemas of the database's own, in lower case

    def check_name(self, name: str, title: str) -> None:
        """Raise IllegalName, with the title of the database, for a name that no table or column can have."""
        if reason := next(self._faults(name), None):
            raise IllegalName(name[:_SHOWN], title, reason)

    def check_column(self, name: str, title: str) -> None:
        """Raise IllegalName for a name that no further column can have."""
        self.check_name(name, title)
        if name.lower() in self.taken:
            raise IllegalName(name, title, "it names a column of the database's own in every table")

    def check_schema(self, name: str, title: str) -> None:
        """Raise IllegalName for a name that no schema of a user can have."""
        self.check_name(name, title)
        if name.lower().startswith(self.own_schemas):
            raise IllegalName(name, title, "it names a schema of the database's own")

    def same(self, name: str) -> str:
        """Return a text that is equal for all names of one column."""
        return name if self.twins else name.lower()

    def _faults(self, name: str) -> Iterator[str]:
        if not name or "\0" in name:
            yield "it is empty or contains a zero character"
        try:
            length = len(name.encode())
        except UnicodeEncodeError:
            yield "it is no text in UTF-8"
            return
        if (len(name) if self.counts_characters else length) > self.longest:
            yield f"it is longer than {self.longest} {'characters' if self.counts_characters else 'bytes'}"
        if not set(self.barred).isdisjoint(name):
            yield f"it contains one of {self.barred!r}"
        if self.basic and any(character > "\uffff" for character in name):
            yield "it contains a character beyond U+FFFF"
        if self.trims and name.endswith(" "):
            yield "it ends with a blank"
