"""A log in files as one pick-up without limit: rows become events, every row accounted for.

by_row       row by row
by_column/   by column, for logs of any size
"""
