"""Captures of GBase 8s and Informix by column: bytes in, batches of changes out.

The record-wise reader (`eventlog.gbase`) is the reference, and reads all that is not plain itself.

record_scan     the records of a piece, as far as all of them are plain
column_values   the values of a column
change_batches  both as batches of changes, in the order of the commits
"""

from eventlog.columnar.captures.change_batches import BatchReader

__all__ = ["BatchReader"]
