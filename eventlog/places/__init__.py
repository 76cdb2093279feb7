"""Where the records of some formats stand besides files: topics, tables of a database, growing streams.

places          which flag leads to which place, for which format
topics kafka    messages of a topic; schemas come from a `registry`
change_tables   Qlik's change tables in a database
queues          LINTER's queues in a database
growing         a capture stream that is followed as it grows
"""
