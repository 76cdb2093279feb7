"""All inputs of a task as one sequence, in parallel: read, sorted by Spark, joined range by range.

items     what travels between the two steps
rows      change tables
messages  messages
reading   files, shared out among tasks
running   both steps, of files that become parts
"""
