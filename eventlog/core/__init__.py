"""The model and its words: what a change is, values and what they mean, tables and keys, errors, settings.

Pure: no file, clock, network or database is touched here, and nothing here imports another room.
"""
