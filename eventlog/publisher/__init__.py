"""The publisher of one log.

daemon       when cycles run, day and night
session      what stands and falls with one leadership: lock, sink, publisher
cycle        one cycle: pick up, fold, query back, deliver, finish
reading      the rows of a snapshot as events, and what becomes of the others
batches      events as documents, and what is remembered of them
tally        what the answers come to
opening      from settings to an open log
config       the settings: flag, environment, file, default
"""
