"""Changes become current tables of a lake: exactly once, in rounds of whole transactions.

lake_writer    rounds of changes, each one a commit of every table that it concerns
rounds         the table of rounds: what is intended, and which versions of tables belong together
lake_tables    the tables of the lake, found or made; their columns and keys
lake_history   the histories of tables: a row for each change
lake_types     what a value becomes in a column
delta_table    a table of Delta Lake; the only module that imports its library
lake_settings  what is chosen
"""
