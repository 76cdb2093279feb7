"""Changes become rows of tables, which remember themselves what was applied.

table_writer   groups of whole transactions, which the database takes one by one
database       a group in one transaction of the database, with what was applied
progress       what was applied of a source, and is passed over when it is read again
late_changes   which rows a late change must leave alone
catalogue      the tables of a database, found or made; `definitions` the statements that make them
source_schema  what a source says of its tables beside changes
table_target   what a change does to which row; `blocks` does the same for many changes, by column
cells          what a value becomes in a column; `cell_columns` does the same for many values
reduction      many changes of a row as one effect
rows           the steps of changes, in tables where each row is there once
staging        the effects of a batch, written by few statements; `copying` how they reach PostgreSQL
"""
