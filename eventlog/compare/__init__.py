"""What changed between two states of tables: each object's key and values on one side beside the other's.

Both sides meet by their keys, letter for letter, never by the order of a database: where they do not fit in
memory they are divided by a hash of the key, on disk.
"""
