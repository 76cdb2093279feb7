"""Inputs whose records depend on each other, as one sequence.

Many tasks read change tables and messages; Spark sorts the records, and tasks join them range by range.
Captures are cut where no transaction is open. Other inputs are read by one task.
"""
