"""A notebook on Spark, cell by cell: a log in a lake becomes documents, typed changes, and an answer of SQL.

    python examples/notebook.py LAKE OUT

LAKE and OUT are folders, or places as s3a://bucket/path that the session can reach; OUT must be new. It needs
the extra `spark`.
"""

# %% The session: in a notebook it is there. Its workers need this Python, which `python3` may not be.
import os
import sys
from pathlib import Path

from eventlog_spark import changes, documents
from pyarrow import csv
from pyspark.sql import SparkSession

import eventlog

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = SparkSession.builder.getOrCreate()
lake, out = sys.argv[1:]

# %% A lake, if it is empty: the log and the table `usr` of the examples, as Parquet.
here = Path(__file__).parent
as_log = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
for name, file in (("log", "log.csv"), ("usr", "usr.csv")):
    rows = csv.read_csv(here / file, convert_options=as_log)
    spark.createDataFrame(rows).write.mode("ignore").parquet(f"{lake}/{name}")

# %% What is known of the tables, the log, and the rows that its query-backs read.
tables = eventlog.tables(here / "tables.toml")
log = spark.read.parquet(f"{lake}/log")
usr = spark.read.parquet(f"{lake}/usr")

# %% Documents, in the order in which they leave; what is refused goes where somebody looks.
sent = documents(log, tables, current={"usr": usr}).cache()
sent.where("refused is null").orderBy("order").coalesce(1).select("document").write.text(f"{out}/documents")
sent.where("refused is not null").select("record_ids", "refused", "record").write.json(f"{out}/refused")

# %% Changes with the types of the table, which SQL can ask.
told = changes(log, tables=tables, current={"usr": usr}, typed="usr").where("refused is null")
told.createOrReplaceTempView("usr_changes")
usr.createOrReplaceTempView("usr")
renamed = spark.sql("""
    select usr.lname, before.fname as was, after.fname as is
    from usr_changes join usr on usr.idu = key.idu
    where op = 'update' and before.fname <> after.fname
""")
renamed.show()

# %% The changes as Parquet.
told.orderBy("order").coalesce(1).write.parquet(f"{out}/usr_changes")
