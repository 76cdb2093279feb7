"""Change tables of Qlik by column: columns of CSV or Parquet in, batches of changes out.

The row-wise reader (`eventlog.qlik.tables`) is the reference, and reads all that is not plain itself.

typed_cells    the values of a data column
table_batches  the changes of a piece of a table
"""

from eventlog.columnar.captures.column_values import NotPlain
from eventlog.columnar.change_tables.table_batches import table_batch

__all__ = ["NotPlain", "table_batch"]
