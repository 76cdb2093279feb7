"""The fold and the writer in columns: batches of log rows in, a table of their events out.

The plain fold (`eventlog.fold`) and the plain writer (`eventlog.xds`) are the reference. An event is a frame
with the parts that its rows add. A part depends on the row's type, its column and which of its values are
null, never on a value. So it is learned once from the plain way, and filled in for all rows together. An
object whose result is not certain goes the plain way itself.

admit         the rows that can be believed
batch         the rows of a batch, by object and life
key_patterns  which keys are certainly plain, and the values of those
texts         values as events contain them
unanswerable  query-backs of tables without current rows, which are refused
learn         what names, rows and cells add, learned from the plain way
objects       the one name of each object
current       the current rows that are needed, and the answers
content       what the rows of a batch add, and which objects are in doubt
fold          rows become events                                  (event-log, section 4, rules 1 to 5)
write         the texts of events, from their pieces
engine        all of that, one batch at a time; and the plain way
"""

from eventlog.fold.by_column.batch import Rows
from eventlog.fold.by_column.current import CurrentAnswer, CurrentColumns
from eventlog.fold.by_column.engine import BatchEvents, Engine, Needs

__all__ = ["BatchEvents", "CurrentAnswer", "CurrentColumns", "Engine", "Needs", "Rows"]
