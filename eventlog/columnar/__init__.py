"""The fold and the writer in columns: batches of log rows in, the texts of their events out, in one buffer.

The plain fold (`eventlog.fold`) and the plain writer (`eventlog.xds`) say what is meant. An event is a frame,
and in it what each of its rows adds; that depends on the row's type, its column and which of its values are
null, never on a value. So it is learnt once from the plain way, and filled in for all rows together. An
object that is not certain to come out right so goes the plain way itself.

batch      the rows of a batch, by object and life
keys       keys that a pattern tells to be right
texts      values as events hold them
known      what names, rows and cells are, learnt from the plain way
speaking   which rows speak, and for which others          (event-log, section 4, rules 1 to 3)
runs       what speaks becomes events                                       (rules 4 and 5)
plain      objects in doubt, the plain way
engine     all of that, one batch at a time
packing    events put into documents
kept cuts long    a life that is longer than memory: decided by numbers, read again to be filled in
"""

from eventlog.columnar.batch import Rows
from eventlog.columnar.current import CurrentColumns
from eventlog.columnar.engine import Engine, Events

__all__ = ["CurrentColumns", "Engine", "Events", "Rows"]
