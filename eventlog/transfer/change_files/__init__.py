"""Files of change tables and messages, by column: the fast form of a source and a target of `convert`.

odd_lines   the lines of changes that the plain reader and writer make
by_sequence  rows of all files in one sequence; `sorted_slabs` has them, on disk beyond what memory holds
sorted_batches  rows of files as batches for another sorter, as Spark is, and sorted ones as lines
as_is       rows of files as they come
messages    messages of files, as they come or in their sequence
writing     from files to a file of lines
"""
