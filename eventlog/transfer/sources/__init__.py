"""Where changes come from: files, topics, tables of a database, captures.

sequenced_feed    what Replicate writes, read on from a state: change tables in files, or `change_tables` in a
                  database, and messages of topics, which `topic_reader` reads
stream_feed       a capture or a queue: `captured_files`, or `queues` of LINTER in a database
capture_feed      a live capture: `capture` is the session with its snapshot, `jdbc` the way to the server
schema_registry   the schemas of messages, by their ids
sql_cells         what the columns of a database hold, and its clock
"""
