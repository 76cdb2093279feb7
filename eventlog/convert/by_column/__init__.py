"""A log in files as one pick-up of any size, in columns: the fast form of `eventlog.convert.by_row`.

regular    pieces of a CSV file that Arrow reads as our own reader does
slabs      the rows of files by column; what is not regular comes row by row
sound      rows by column that are entries, and those that are none
spool      rows gathered by object, on disk beyond what memory holds
leaving    events put into the order of leaving, and into documents
pickup     all of that
"""

from eventlog.convert.by_column.pickup import BulkPickup

__all__ = ["BulkPickup"]
