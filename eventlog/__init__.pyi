"""What the package offers, for those who check types; `__init__.py` loads it when it is asked for."""

from eventlog.core.change import ABSENT as ABSENT
from eventlog.core.change import Change as Change
from eventlog.core.change import Field as Field
from eventlog.core.change import Op as Op
from eventlog.core.errors import EventlogError as EventlogError
from eventlog.core.errors import Refused as Refused
from eventlog.core.tables import Tables as Tables
from eventlog.library import Document as Document
from eventlog.library import Explained as Explained
from eventlog.library import Record as Record
from eventlog.library import RecordRefused as RecordRefused
from eventlog.library import changes as changes
from eventlog.library import documents as documents
from eventlog.library import explain as explain
from eventlog.library import read as read
from eventlog.library import read_table_key as read_table_key
from eventlog.library import records as records
from eventlog.library import settings_of as settings_of
from eventlog.library import table_key as table_key
from eventlog.library import tables as tables
from eventlog.library import write as write

__version__: str
