"""The same fold and formats on a backlog of any size: Spark carries rows, `eventlog` gives them meaning.

job       one backlog: read, shuffle, fold, write, commit
session   a Spark that starts by itself; java finds its runtime
rows      log rows as a DataFrame; datasource reads the files that Spark cannot read faithfully
fold      what a task does with the sorted rows of its objects; parts writes its files
commit    the output folder appears whole, once, or not at all
"""
