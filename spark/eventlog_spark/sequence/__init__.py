"""Inputs whose records depend on each other, as one sequence.

Many tasks read DataFrames of change tables and messages; Spark sorts the records, and tasks join them range
by range. Other inputs are read by one task.
"""
