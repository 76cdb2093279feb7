"""A log in files as one pick-up of any size, in columns: the fast form of `by_row`.

csv_records    the records of a piece of CSV, and which of them Arrow reads alike
row_batches    the rows of files by column; rows that are not regular come one by one
checked_rows   rows by column that are entries, and those that are none
object_spool   rows gathered by object, on disk beyond what memory holds
pickup         all of that, with repeated record_ids and refused rows
"""

from eventlog.transfer.log_files.by_column.pickup import BulkPickup

__all__ = ["BulkPickup"]
