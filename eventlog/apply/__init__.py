"""Changes become rows of tables, and the target itself remembers which.

run         from changes to groups of whole transactions, which a target takes one by one
progress    what was applied of a source, and is passed over when it is read again
later       which rows what comes late must leave alone
target      what a target must do
database    a database as one: a group in one transaction, with what was applied
catalogue   its tables, found or made; `definitions` the statements that make them
blame       what is to blame for an error of a database
described   what a source tells of its tables beside changes
goal        a table: what a change does to which row
cells       what a value becomes in a column; `cell_columns` the same for many values at once
blocks      what many changes do at once, by column: the same that `goal` says of each
reduction   many changes of a row as one effect
rows        the steps of changes, done to tables where each row stands once
versions    the same for tables with history; `history` says which versions, `span` what their columns hold
delta       a folder of Delta tables as a target
staging     effects of a batch, written by few statements; `copying` how they reach PostgreSQL
"""
