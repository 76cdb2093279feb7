"""The same fold and formats on a backlog of any size: Spark carries rows, `eventlog` gives them meaning.

pipeline  the plan of a log, on one screen; job is the whole of it, from inputs to manifest
input     log rows and current rows as DataFrames, and how they travel
fold      what tasks make of the sorted rows of their objects
output    what tasks write and tell; the output folder appears whole, once, or not at all
live      logs and topics that go on meanwhile: frozen, delivered, finished
cluster   Spark itself
"""
