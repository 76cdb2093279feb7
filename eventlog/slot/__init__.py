"""PostgreSQL's own log fills the event log: no triggers, and nothing of a table is read but what changed.

decode        messages of the plugin pgoutput
transactions  whole transactions, and what the changes of one mean for its objects
stream        the messages of a slot, as the server sends them
publication   which tables the server's log can be read for, and what it lacks
tables        those that the settings name, with what of them may be lost
filler        from the stream into the log, for the publisher
findings      what `check` reports of it
"""
