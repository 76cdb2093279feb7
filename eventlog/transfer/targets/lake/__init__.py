"""Changes become current tables of a lake: exactly once, in rounds of whole transactions.

lake_writer    rounds of changes, each one a commit of every table that it concerns
rounds         the table of rounds: what is intended, and which versions of tables belong together
lake_tables    the tables of the lake, found or made; their columns and keys
lake_history   the histories of tables: a row for each change
lake_types     what a value becomes in a column
lake_place     what formats of a lake have in common: places, versions of tables, commits
lakes          which lake an address names
delta_table    a table of Delta Lake; the only module that imports its library
iceberg_table  a table of Iceberg; the only module that imports its library
row_merge      the rows of a table after changes, for a library that merges none
lake_settings  what is chosen
"""
