"""Inputs whose records say something of each other, as one sequence.

Many tasks read change tables and messages; Spark sorts the records, and tasks join them range by range.
Captures are cut where no transaction is open. What cannot be shared out is read by one task.
"""
