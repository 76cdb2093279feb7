"""What the package offers, for those who check types; `__init__.py` loads it when it is asked for."""

from eventlog_spark.library import changes as changes
from eventlog_spark.library import current as current
from eventlog_spark.library import documents as documents
from eventlog_spark.library import log as log
from eventlog_spark.library import table_key as table_key
from eventlog_spark.merging import merge as merge
from eventlog_spark.net_rows import net_changes as net_changes
