"""The publisher of one log.

daemon       when cycles run, day and night
session      what lasts as long as one leadership: lock, sink, publisher
cycle        one cycle: pick up, fold, read back, deliver, finish
pick_up      what goes next, read from the log
fold         rows of a snapshot become events; `reading` is what they come to
read_back    the current rows that events need, a statement for each table
deliver      documents on their way, and what the replies say
finish       batches are remembered, rows are finished
batches      events as documents, and what is remembered of them
tally        what the answers of one cycle come to
open_log     from settings to an open log
tables       the tables that are published, and how they are read
config       the settings: flag, environment, file, default
"""
