"""The settings of an input: the size of a record, which bounds memory (decision 15), and the form of CSV."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.errors import InvalidValue
from eventlog.core.formats import Layout
from eventlog.core.settings import setting
from eventlog.core.shared_settings import max_record_setting

_MIN_MARKS = 1 << 12  # where max_record is small
_TABS = {"\\t": "\t"}  # a backslash and a t, as a shell passes them


def _check_character(text: str) -> None:
    """Raise InvalidValue unless the text is one character that can be between or around cells."""
    plain = _TABS.get(text, text)
    if len(plain) != 1 or plain in "\r\n\0" or not plain.isascii():
        raise InvalidValue(text, "one character of ASCII, or \\t")


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings."""

    max_record: int = max_record_setting()
    csv_delimiter: str = setting(
        ",", "the character between the cells of CSV; of .tsv a tab", metavar="CHAR", check=_check_character
    )
    csv_quote: str = setting('"', "the character around cells of CSV", metavar="CHAR", check=_check_character)
    csv_null: str = setting("", "the unquoted cell of CSV that is null, such as \\N", metavar="TEXT")

    def csv_layout(self, name: str) -> Layout | None:
        """Return the layout of a CSV file of this name; None if it is the usual one."""
        tabs = name.lower().removesuffix(".gz").endswith(".tsv") and self.csv_delimiter == ","
        delimiter = "\t" if tabs else _TABS.get(self.csv_delimiter, self.csv_delimiter)
        if (delimiter, self.csv_quote, self.csv_null) == (",", '"', ""):
            return None
        return Layout(delimiter, self.csv_quote, self.csv_null)

    @property
    def max_marks(self) -> int:
        """Return how many characters of a JSON record may be outside its strings.

        Each of them may be a `[` or `{`, and so make an object of hundreds of bytes in memory.
        """
        return max(_MIN_MARKS, self.max_record >> 6)


LIMITS = Limits()
