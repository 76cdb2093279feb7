"""All inputs of a task as one sequence, in parallel: read, sorted by Spark, joined range by range.

items     what travels between the steps, and how it is sorted
rows      change tables: read, numbered, looked at
messages  messages: the same
files     where items come from: files, shared out among tasks
frames    where items come from: DataFrames
join      ranges become changes
parts     files become parts, from start to end
"""
