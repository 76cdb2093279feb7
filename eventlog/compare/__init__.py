"""Differences between two states of tables: the key and values of each object on both sides.

Both sides meet by their keys, letter for letter, never by the order of a database. If they do not fit in
memory, they are divided by a hash of the key, on disk.
"""
