"""Where changes come from: files, topics, tables of a database, captures.

source               what every source must do
rows_feed            change tables, read on from a state
  change_table_files   in files; `change_tables` in a database
topics_feed          messages of topics; `kafka` asks the brokers, with `kafka_settings`
stream_feed          a capture or a queue
  captured_files       a capture in a file; `queues` of LINTER in a database
  growing_stream       a capture that is followed as it grows
capture_feed         a live capture: `capture` is the session, `overlap` its snapshot, `jdbc` the way
schema_registry      the schemas of messages, by their ids
sql_cells            what the columns of a database hold; `sql_clock` its clock
"""
