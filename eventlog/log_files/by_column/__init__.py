"""A log in files as one pick-up of any size, in columns: the fast form of `eventlog.log_files.by_row`.

fast_csv       pieces of a CSV file that Arrow reads as our own reader does
row_batches    the rows of files by column; what is not regular comes row by row
checked_rows   rows by column that are entries, and those that are none
object_spool   rows gathered by object, on disk beyond what memory holds
repeats        record_ids that several rows share
refusals       rows that are left out, and why
pickup         all of that
"""

from eventlog.log_files.by_column.pickup import BulkPickup

__all__ = ["BulkPickup"]
