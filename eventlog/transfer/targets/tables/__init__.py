"""Changes become rows of tables, which remember themselves what was applied.

writer          groups of whole transactions, which the database takes one by one
database        a group in one transaction of the database, with what was applied
apply_progress  what was applied of a source, and is passed over when it is read again
schema          the tables of a database, found or made; `definitions` the statements that make them
table           what changes do to which rows, read in blocks, column by column
cells           what a value becomes in a column
net_effect      what many changes do to the rows of a table, in a database or a lake
row_steps       the steps of changes, as many together as possible; what is refused is left out
stage           the net effect on a table, written by few statements
apply_settings  what is chosen; `outcomes` what became of changes, and why
"""
